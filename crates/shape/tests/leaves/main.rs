//! What waits in a leaf, and which of it goes next: queues per connection and host, limits, queue
//! management, sessions.

mod calls;
mod fairness;
mod limits;
mod paying;
mod sessions;
mod silence;
mod world;
