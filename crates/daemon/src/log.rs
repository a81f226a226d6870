//! What is said on standard error: a reader who is gone, stopped or slow holds up nobody.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_control::shown;
use weir_policy::Reading;

/// Says on standard error why the command cannot do its work; exit status 2.
pub fn problem(text: &str) -> ExitCode {
    say(&format!("weir: {text}"));
    ExitCode::from(2)
}

/// A line on standard error; what cannot be written there is lost, and nobody waits for it longer
/// than a command that does nothing else can.
pub fn say(text: &str) {
    match QUEUE.get() {
        Some(queue) => queue.put(text.to_owned()),
        None => write(text),
    }
}

/// Says all problems of a policy, and how many there are.
pub fn problems(reading: &Reading) {
    say_all(&shown::text(reading, std::io::stderr().is_terminal()));
}

/// Says several lines, if there are any.
pub fn say_all(text: &str) {
    if !text.is_empty() {
        say(text.trim_end_matches('\n'));
    }
}

/// Lines that wait to be printed.
const LINES: usize = 256;

/// How long the end of a daemon waits for its last lines to be printed.
const LAST_WORDS: Duration = Duration::from_millis(200);

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// From now on nobody waits for standard error: what is said is kept until [`print_aside`]. A
/// process that gives up its rights makes no thread before that.
pub(crate) fn hold_printing() {
    let (sender, lines) = sync_channel(LINES);
    let lost = AtomicUsize::new(0);
    let _ = QUEUE.set(Queue { lines: Mutex::new(sender), lost, waits: Mutex::new(Some(lines)) });
}

/// From now on standard error has a thread of its own: a terminal that is gone, stopped by ^S or a
/// full disk holds up that thread and no other. What a full queue has no room for is lost; how
/// many lines that were is said with the next one.
pub(crate) fn print_aside() {
    hold_printing();
    let Some(lines) = QUEUE.get().and_then(Queue::reader) else { return };
    let printed = std::thread::Builder::new().name("print".to_owned()).spawn(move || {
        while let Ok(line) = lines.recv() {
            match line {
                Line::Text(text) => write(&text),
                Line::End(done) => drop(done.send(())),
            }
        }
    });
    if let Err(error) = printed {
        // without the thread the queue fills and its lines are lost: better than to be held up
        say(&format!("weir: nothing more will be printed: {error}"));
    }
    // what a panic says goes the same way: a thread that panics must end, not wait for a terminal
    std::panic::set_hook(Box::new(|panic| say(&format!("weir: a fault of weir: {panic}"))));
}

/// Waits for a moment until what was said is printed.
pub(crate) fn print_the_rest() {
    let Some(queue) = QUEUE.get() else { return };
    if let Some(lines) = queue.reader() {
        // no thread was made: this one prints, as far as it need not wait
        for line in lines.try_iter() {
            match line {
                Line::Text(text) if takes_more() => write(&text),
                Line::Text(_) | Line::End(_) => {}
            }
        }
        return;
    }
    let (done, printed) = sync_channel(1);
    if queue.try_put(Line::End(done)) {
        let _ = printed.recv_timeout(LAST_WORDS);
    }
}

/// Whether standard error has room within a moment.
fn takes_more() -> bool {
    let stderr = std::io::stderr();
    let mut asked = [PollFd::new(&stderr, PollFlags::OUT)];
    let span = Timespec::try_from(LAST_WORDS).ok();
    matches!(poll(&mut asked, span.as_ref()), Ok(1..))
}

struct Queue {
    lines: Mutex<SyncSender<Line>>,
    lost: AtomicUsize,
    /// The other end, until somebody reads there.
    waits: Mutex<Option<Receiver<Line>>>,
}

enum Line {
    Text(String),
    /// Answered when everything before it is printed.
    End(SyncSender<()>),
}

impl Queue {
    fn reader(&self) -> Option<Receiver<Line>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, text: String) {
        let lost = self.lost.swap(0, Relaxed);
        let text = match lost {
            0 => text,
            _ => format!("weir: {lost} lines could not be printed in time\n{text}"),
        };
        if !self.try_put(Line::Text(text)) {
            self.lost.fetch_add(lost + 1, Relaxed);
        }
    }

    fn try_put(&self, line: Line) -> bool {
        // held for as long as it takes to put a line in, which waits for nothing
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).try_send(line).is_ok()
    }
}

fn write(text: &str) {
    // one call for a line, so that lines of several processes do not mix
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_nobody_empties_loses_lines_and_says_how_many() {
        let (sender, lines) = sync_channel(2);
        let lost = AtomicUsize::new(0);
        let queue = Queue { lines: Mutex::new(sender), lost, waits: Mutex::new(None) };
        for text in ["a", "b", "c", "d"] {
            queue.put(text.to_owned());
        }
        let taken = lines.try_iter().count();
        queue.put("e".to_owned());
        let Ok(Line::Text(said)) = lines.try_recv() else { panic!("nothing came") };
        assert_eq!((taken, said.as_str()), (2, "weir: 2 lines could not be printed in time\ne"));
    }
}
