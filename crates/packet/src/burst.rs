//! A handful of frames in order: what one call of a stage takes or gives. The frames lie in one
//! array without gaps, so that a stage can look at all of them at once before it moves any.

use weir_units::limits::BURST_FRAMES;

use crate::Frame;

/// At most [`BURST_FRAMES`] frames, first in, first out.
#[derive(Debug)]
pub struct Burst {
    frames: [Frame; BURST_FRAMES],
    first: usize,
    behind: usize,
}

impl Burst {
    /// No frames.
    #[must_use]
    pub const fn new() -> Self {
        Burst { frames: [const { Frame::NONE }; BURST_FRAMES], first: 0, behind: 0 }
    }

    /// Adds a frame behind the others, or gives it back when the burst is full.
    pub fn push(&mut self, frame: Frame) -> Result<(), Frame> {
        if self.behind == BURST_FRAMES {
            if self.first == 0 {
                return Err(frame);
            }
            self.frames.rotate_left(self.first);
            self.behind -= self.first;
            self.first = 0;
        }
        self.frames[self.behind] = frame;
        self.behind += 1;
        Ok(())
    }

    /// Takes the first frame.
    pub fn pop(&mut self) -> Option<Frame> {
        if self.is_empty() {
            return None;
        }
        let frame = std::mem::replace(&mut self.frames[self.first], Frame::NONE);
        self.first += 1;
        if self.first == self.behind {
            (self.first, self.behind) = (0, 0);
        }
        Some(frame)
    }

    /// Takes the frames in order; those that the caller does not take stay.
    pub fn drain(&mut self) -> impl Iterator<Item = Frame> + '_ {
        std::iter::from_fn(|| self.pop())
    }

    /// The frames in order.
    pub fn frames(&self) -> &[Frame] {
        &self.frames[self.first..self.behind]
    }

    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.behind - self.first
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether one more is too many.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// How many more fit.
    #[must_use]
    pub const fn room(&self) -> usize {
        BURST_FRAMES - self.len()
    }
}

impl Default for Burst {
    fn default() -> Self {
        Burst::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pool;

    #[test]
    fn frames_leave_in_the_order_they_came() {
        let mut pool = Pool::new(2 * BURST_FRAMES, 1);
        let mut burst = Burst::new();
        for _ in 0..BURST_FRAMES {
            burst.push(pool.take().unwrap()).unwrap();
        }
        assert!(burst.is_full());
        let refused = burst.push(pool.take().unwrap()).unwrap_err();
        let first: Vec<u32> = burst.drain().take(10).map(|f| f.index()).collect();
        assert_eq!(first, (0..10).collect::<Vec<u32>>());
        assert_eq!((burst.len(), burst.room()), (BURST_FRAMES - 10, 10));
        burst.push(refused).unwrap();
        assert_eq!(burst.frames().last().map(Frame::index), Some(64));
        let rest: Vec<u32> = burst.drain().map(|f| f.index()).collect();
        assert_eq!(rest, (10..=64).collect::<Vec<u32>>());
        assert!(burst.is_empty() && burst.pop().is_none());
    }
}
