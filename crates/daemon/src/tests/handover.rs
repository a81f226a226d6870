//! A weir that ends, and the one that begins after it.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use weir_io::wait::since_boot;

use super::*;
use crate::handover::{Connections, Handed, HandoverFile, send_the_rest};

/// Ends the first one, and tells what it has left.
fn ended(world: World) -> (Folder, Connections) {
    let mut stopped = world.asked.control.end().stop().unwrap();
    let connections = Connections::of(stopped.driver.engine_mut(), 1, now() + stopped.ahead);
    (world.folder, connections)
}

fn known(asked: &mut Asked) -> u64 {
    ask(asked, Request::Status, now())["flows"].as_u64().unwrap()
}

/// A world in which all flows have been seen.
fn at_work(name: &str) -> World {
    let mut world = World::new(name);
    let World { wires, asked, .. } = &mut world;
    let until = now() + Span::from_secs(60);
    Traffic::during(wires, || {
        while known(asked) < u64::from(FLOWS) {
            assert!(now() < until, "not all flows come");
        }
    });
    world
}

fn left(name: &str) -> (Folder, HandoverFile, Vec<u8>) {
    let (folder, connections) = ended(at_work(name));
    assert_eq!((connections.flows, connections.left_out), (u64::from(FLOWS), 0));
    let file = HandoverFile::of_boot(&folder.0, "a");
    let said = file.leave(&connections, since_boot()).unwrap();
    assert!(said.contains("8 connections are left"), "{said}");
    let path = folder.0.join("connections");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let bytes = std::fs::read(path).unwrap();
    (folder, file, bytes)
}

#[test]
fn the_next_weir_knows_the_connections_of_the_one_before() {
    let (folder, file, _) = left("handover-next");
    let handed = file.take().unwrap().unwrap();
    assert_eq!(handed.connections.seed, 1);
    // a weir that failed to begin leaves it to the next one
    file.put_back();
    assert!(file.take().unwrap().is_some());
    file.is_at_work();
    file.put_back();
    assert!(file.take().unwrap().is_none(), "it is taken once");
    let names = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name());
    let stays = |name: &OsString| name.to_str().unwrap().starts_with("connections");
    assert_eq!(names.filter(stays).count(), 0);
    let mut world = World::with(folder, Ok(Some(handed)));
    assert_eq!(known(&mut world.asked), u64::from(FLOWS));
    let status = ask(&mut world.asked, Request::Status, now());
    assert_eq!(status["taken_over"], u64::from(FLOWS));
}

#[test]
fn what_waits_leaves_in_order_before_the_end() {
    let folder = Folder::new("handover-empties");
    std::fs::write(folder.0.join("p.toml"), policy("60kbit")).unwrap();
    let world = World::again(folder);
    // 12 000 bytes at this rate: 1.6 s
    for number in 0..120_u32 {
        let ends = [([10, 0, 0, 1], 1_000).into(), ([192, 0, 2, 1], 53).into()];
        let mut payload = [0; 58];
        payload[..4].copy_from_slice(&number.to_be_bytes());
        world.wires[0].put(Build::udp(ends[0], ends[1]).payload(&payload).to_vec());
    }
    let mut link = world.asked.control.end();
    link.empty(Duration::from_secs(60));
    let numbers: Vec<u32> = std::iter::from_fn(|| world.wires[1].take())
        .map(|frame| u32::from_be_bytes(frame[42..46].try_into().unwrap()))
        .collect();
    assert_eq!(numbers, (0..120).collect::<Vec<_>>());
    let mut stopped = link.stop().unwrap();
    assert!(stopped.ahead > Span::ZERO, "it has waited for each frame");
    let connections = Connections::of(stopped.driver.engine_mut(), 1, now() + stopped.ahead);
    assert_eq!(connections.flows, 1);
}

#[test]
fn frames_that_a_full_port_refused_leave_when_it_takes_them() {
    let mut world = World::new("handover-full");
    world.wires[1].set_room(0);
    for port in 0..20 {
        let ends = [([10, 0, 0, 1], 1_000 + port).into(), ([192, 0, 2, 1], 53).into()];
        world.wires[0].put(Build::udp(ends[0], ends[1]).to_vec());
    }
    let until = now() + Span::from_secs(60);
    while known(&mut world.asked) < 20 {
        assert!(now() < until, "not all frames come");
    }
    let stopped = world.asked.control.end().stop().unwrap();
    assert!(stopped.driver.unsent() > 0 && world.wires[1].take().is_none());
    world.wires[1].set_room(usize::MAX);
    send_the_rest(stopped, Span::from_secs(60));
    assert_eq!(std::iter::from_fn(|| world.wires[1].take()).count(), 20);
}

#[test]
fn without_a_weir_before_nothing_is_said() {
    let folder = Folder::new("handover-none");
    assert!(HandoverFile::at(&folder.0).take().unwrap().is_none());
    let mut world = World::new("handover-fresh");
    assert_eq!(ask(&mut world.asked, Request::Status, now())["taken_over"], Value::Null);
}

#[test]
fn what_cannot_be_used_is_said_and_removed() {
    let (folder, file, bytes) = left("handover-unusable");
    let path = folder.0.join("connections");
    let no = |file: &HandoverFile, bytes: &[u8], why: &str| {
        std::fs::write(&path, bytes).unwrap();
        let said = file.take().map(drop).unwrap_err();
        assert!(said.contains(why) && said.contains("connections begin anew"), "{said}");
        assert!(!path.exists(), "{why}: it is removed");
    };
    no(&HandoverFile::of_boot(&folder.0, "b"), &bytes, "the machine has been restarted since");
    no(&file, &[], "it is not what was written there");
    no(&file, &bytes[..bytes.len() - 1], "it is not what was written there");
    let mut other = bytes.clone();
    other[40] ^= 1;
    no(&file, &other, "it is not what was written there");
    let (_, connections) = ended(at_work("handover-old"));
    let ago = |span| {
        let _ = file.leave(&connections, since_boot() - span);
        std::fs::read(&path).unwrap()
    };
    let up = since_boot().since(Instant::ZERO);
    if up > Span::from_secs(700) {
        no(&file, &ago(Span::from_secs(601)), "it was left 601 s ago");
    }
    let _ = file.leave(&connections, since_boot() + Span::from_secs(60));
    no(&file, &std::fs::read(&path).unwrap(), "it was left");
    let aside = folder.0.join("connections.taken");
    std::fs::create_dir(&aside).unwrap();
    no(&file, &bytes, "connections.taken: ");
    no(&file, &bytes, "; remove that directory");
    std::fs::remove_dir(&aside).unwrap();
    std::fs::create_dir(&path).unwrap();
    let said = file.take().map(drop).unwrap_err();
    assert!(said.contains("it is a directory; remove it"), "{said}");
    assert!(file.leave(&connections, since_boot()).is_err());
}

#[test]
fn what_was_lost_is_said_in_the_status() {
    let folder = World::new("handover-lost").stop();
    let mut world = World::with(folder, Err("nothing can be used".to_owned()));
    let status = ask(&mut world.asked, Request::Status, now());
    assert_eq!(status["taken_over"], Value::Null);
    assert_eq!(status["not_taken_over"], "nothing can be used");
}

#[test]
fn what_a_weir_that_was_killed_was_writing_does_not_stay() {
    let (folder, connections) = ended(World::new("handover-killed"));
    let unfinished = folder.0.join("connections.weir-99999999");
    std::fs::write(&unfinished, "a secret").unwrap();
    // this one may still be written
    let lives = folder.0.join(format!("connections.weir-{}", std::os::unix::process::parent_id()));
    std::fs::write(&lives, "a secret").unwrap();
    let file = HandoverFile::of_boot(&folder.0, "a");
    file.leave(&connections, since_boot()).unwrap();
    assert!(!unfinished.exists() && lives.exists() && folder.0.join("connections").exists());
}

#[test]
fn what_a_weir_took_that_was_killed_is_no_other_ones() {
    let (folder, file, bytes) = left("handover-stale");
    let (path, aside) = (folder.0.join("connections"), folder.0.join("connections.taken"));
    std::fs::rename(&path, &aside).unwrap();
    std::fs::write(folder.0.join("connections.weir-99999999"), &bytes).unwrap();
    assert!(file.take().unwrap().is_none());
    file.put_back();
    let is_left =
        [path, aside, folder.0.join("connections.weir-99999999")].map(|path| path.exists());
    assert_eq!(is_left, [false; 3]);
}

#[test]
fn another_version_is_refused_by_its_number() {
    let (folder, file, bytes) = left("handover-version");
    let text = &bytes[..bytes.len() - 8];
    let at = text.iter().position(|&byte| byte == b'\n').unwrap();
    let mut other = br#"{"version":7,"words":"of its own"}"#.to_vec();
    other.extend_from_slice(&text[at..]);
    other.extend(crate::revision::check(&other).to_be_bytes());
    std::fs::write(folder.0.join("connections"), other).unwrap();
    let said = file.take().map(drop).unwrap_err();
    assert!(said.contains("it is of version 7, and this weir reads 2"), "{said}");
}

#[test]
fn connections_whose_batches_are_damaged_give_those_that_can_be_read() {
    let (folder, file, _) = left("handover-damaged");
    let Handed { mut connections, age } = file.take().unwrap().unwrap();
    connections.damage();
    let mut world = World::with(folder, Ok(Some(Handed { connections, age })));
    assert_eq!(known(&mut world.asked), u64::from(FLOWS));
    let status = ask(&mut world.asked, Request::Status, now());
    assert_eq!(status["taken_over"], u64::from(FLOWS));
    let why = status["not_taken_over"].as_str().unwrap();
    assert!(why.contains("not all connections left by it can be read"), "{why}");
}
