//! Every bound of weir in one place. `docs/limits.md` shows this table to the operator, and
//! `cargo x tidy` holds the two together.

/// Frames in one burst: what `receive` and `transmit` hand over at once.
pub const BURST_FRAMES: usize = 64;
/// Bytes of one buffer in the pool unless the caller says otherwise: an Ethernet frame with two
/// tags, rounded up.
pub const FRAME_BYTES: usize = 2_048;
/// Bytes of a tunnel or tag chain that the parser follows: VLAN tags of one frame.
pub const VLAN_TAGS: usize = 4;
/// IPv6 extension headers that the parser follows in one frame.
pub const IPV6_EXTENSIONS: usize = 8;
/// Levels of classes below the link.
pub const TREE_DEPTH: usize = 8;
/// Classes and subscribers of one link together.
pub const CLASSES: usize = 1 << 20;
/// Bytes of a policy file.
pub const POLICY_BYTES: u64 = 16 << 20;
/// Bytes of a subscriber file.
pub const SUBSCRIBER_BYTES: u64 = 256 << 20;
/// Lines of `match` of one link.
pub const RULES: usize = 4_096;
/// Raw byte matches of one link.
pub const RAW_MATCHES: usize = 64;
/// Address blocks that all rules of one link name together.
pub const PREFIXES: usize = 1 << 21;
/// Leaves that one `each` makes unless it says otherwise.
pub const EACH_LEAVES: u32 = 4_096;
/// Seconds without a frame after which a leaf made by `each` may be given to another host.
pub const EACH_IDLE_SECS: u64 = 300;
/// Connections in the flow table unless the caller says otherwise.
pub const FLOWS: usize = 1 << 17;
/// Datagrams whose later fragments still find their flow.
pub const FRAGMENTED: usize = 1_024;
/// Bytes of one record of a capture.
pub const CAPTURE_RECORD_BYTES: usize = 256 << 10;
/// Interfaces in one section of a capture.
pub const CAPTURE_INTERFACES: usize = 4_096;
/// Problems of one file that are shown before the rest is only counted.
pub const PROBLEMS_SHOWN: usize = 100;
