//! bpf(2), and the page that a program shares with us. Everything here is a system call with a
//! structure of integers; numbers and layouts are those of linux/bpf.h.

use std::ffi::c_long;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use crate::assembler::Instruction;

/// `XDP_FLAGS_DRV_MODE` and `XDP_FLAGS_SKB_MODE` of linux/if_link.h.
pub(crate) const IN_THE_DRIVER: u32 = 1 << 2;
pub(crate) const ABOVE_THE_DRIVER: u32 = 1 << 1;

const MAP_CREATE: c_long = 0;
const MAP_UPDATE_ELEM: c_long = 2;
const PROG_LOAD: c_long = 5;
const LINK_CREATE: c_long = 28;

const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_XSKMAP: u32 = 17;
const MAP_FLAG_MMAPABLE: u32 = 1 << 10;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const NAME: [u8; 16] = *b"weir\0\0\0\0\0\0\0\0\0\0\0\0";
/// The helpers that the program calls are free to programs of any licence.
const LICENSE: &[u8] = b"Apache-2.0\0";
const LOG_BYTES: usize = 64 << 10;
const LOG_LINES_SHOWN: usize = 12;

/// Structures of integers without gaps, which bpf(2) may read and write as bytes.
trait Attributes {}

#[derive(Default)]
#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    numa_node: u32,
    name: [u8; 16],
}
impl Attributes for MapCreate {}

#[derive(Default)]
#[repr(C)]
struct MapUpdate {
    map: u32,
    gap: u32,
    key: u64,
    value: u64,
    flags: u64,
}
impl Attributes for MapUpdate {}

#[derive(Default)]
#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    attach_type: u32,
}
impl Attributes for ProgramLoad {}

#[derive(Default)]
#[repr(C)]
struct LinkCreate {
    program: u32,
    ifindex: u32,
    attach_type: u32,
    flags: u32,
}
impl Attributes for LinkCreate {}

/// A map of one value, made of 64-bit words, that can be mapped into our memory.
pub(crate) fn shared_page(words: usize) -> io::Result<OwnedFd> {
    create_map(MapCreate {
        kind: MAP_TYPE_ARRAY,
        key_bytes: 4,
        value_bytes: number(words * size_of::<u64>()),
        entries: 1,
        flags: MAP_FLAG_MMAPABLE,
        ..MapCreate::default()
    })
}

/// A map from queues to AF_XDP sockets.
pub(crate) fn socket_map(queues: u32) -> io::Result<OwnedFd> {
    create_map(MapCreate {
        kind: MAP_TYPE_XSKMAP,
        key_bytes: 4,
        value_bytes: 4,
        entries: queues,
        ..MapCreate::default()
    })
}

fn create_map(mut map: MapCreate) -> io::Result<OwnedFd> {
    map.name = NAME;
    bpf(MAP_CREATE, &mut map).and_then(owned)
}

pub(crate) fn put_socket(map: &OwnedFd, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let socket = raw(&socket);
    let mut update = MapUpdate {
        map: raw(map),
        key: place(&raw const queue),
        value: place(&raw const socket),
        ..MapUpdate::default()
    };
    bpf(MAP_UPDATE_ELEM, &mut update).map(drop)
}

/// Loads an XDP program. What the verifier has against it comes with the error: it is asked to
/// explain itself only when it refuses, because a log that is not needed costs time and memory.
pub(crate) fn load(code: &[Instruction]) -> Result<OwnedFd, (io::Error, String)> {
    let mut load = ProgramLoad {
        kind: PROG_TYPE_XDP,
        count: number(code.len()),
        instructions: place(code.as_ptr()),
        license: place(LICENSE.as_ptr()),
        name: NAME,
        attach_type: ATTACH_XDP,
        ..ProgramLoad::default()
    };
    match bpf(PROG_LOAD, &mut load).and_then(owned) {
        Err(why) if matches!(why.raw_os_error(), Some(libc::EINVAL | libc::EACCES)) => {
            let mut log = vec![0_u8; LOG_BYTES];
            load.log_level = 1;
            load.log_bytes = number(log.len());
            load.log = place(log.as_mut_ptr());
            // the same answer again, this time with words
            let _ = bpf(PROG_LOAD, &mut load).and_then(owned);
            Err((why, last_lines(&log)))
        }
        other => other.map_err(|why| (why, String::new())),
    }
}

pub(crate) fn link(program: &OwnedFd, ifindex: u32, flags: u32) -> io::Result<OwnedFd> {
    let mut link = LinkCreate { program: raw(program), ifindex, attach_type: ATTACH_XDP, flags };
    bpf(LINK_CREATE, &mut link).and_then(owned)
}

/// Words that a program and we see both.
#[derive(Debug)]
pub(crate) struct Page {
    start: NonNull<u64>,
    words: usize,
}

// SAFETY: the mapping is memory of the process, the same from every thread, and is touched by
// atomic operations only.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    pub(crate) fn map(map: &OwnedFd, words: usize) -> io::Result<Page> {
        let (both, fd) = (libc::PROT_READ | libc::PROT_WRITE, map.as_raw_fd());
        let (place, len) = (std::ptr::null_mut(), words * size_of::<u64>());
        // SAFETY: a new mapping at a place that the kernel chooses touches nothing that exists.
        let start = unsafe { libc::mmap(place, len, both, libc::MAP_SHARED, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("a mapping is never at zero");
        Ok(Page { start, words })
    }

    #[inline]
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.words, "a word outside the shared page");
        let word = self.start.as_ptr().wrapping_add(index);
        // SAFETY: the word is within the mapping, which stays while `self` is borrowed; mappings
        // begin at a page, so it is aligned; the program writes it by single 64-bit stores.
        unsafe { AtomicU64::from_ptr(word) }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: `start` and the length are what `map` was given, and nothing borrows from it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * size_of::<u64>()) };
    }
}

fn bpf<A: Attributes>(command: c_long, attributes: &mut A) -> io::Result<c_long> {
    let (at, len) = (std::ptr::from_mut(attributes), size_of::<A>());
    // SAFETY: `at` and `len` describe `attributes`, which is integers and outlives the call; the
    // addresses in it are of memory that its maker keeps until the call returns.
    let done = unsafe { libc::syscall(libc::SYS_bpf, command, at, len) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(done) }
}

fn owned(fd: c_long) -> io::Result<OwnedFd> {
    let fd = i32::try_from(fd).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    // SAFETY: bpf(2) just made this descriptor for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn raw(fd: &impl AsRawFd) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

fn place<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn last_lines(log: &[u8]) -> String {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
}

/// `BPF_PROG_TEST_RUN`: what the program says to a frame, and nanoseconds per run.
#[cfg(test)]
pub(crate) fn test_run(program: &OwnedFd, frame: &[u8], repeat: u32) -> io::Result<(u32, u32)> {
    const PROG_TEST_RUN: c_long = 10;

    #[derive(Default)]
    #[repr(C)]
    struct TestRun {
        program: u32,
        verdict: u32,
        in_bytes: u32,
        out_bytes: u32,
        input: u64,
        output: u64,
        repeat: u32,
        duration_ns: u32,
        context: [u64; 5],
    }
    impl Attributes for TestRun {}

    let mut run = TestRun {
        program: raw(program),
        in_bytes: number(frame.len()),
        input: place(frame.as_ptr()),
        repeat,
        ..TestRun::default()
    };
    bpf(PROG_TEST_RUN, &mut run)?;
    Ok((run.verdict, run.duration_ns))
}
