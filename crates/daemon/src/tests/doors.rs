//! Who is slow, or brings much, keeps nobody else from being answered.

use super::*;
use crate::board::Board;

#[test]
fn silent_connections_do_not_keep_out_who_wants_to_stop_it() {
    served(World::new("silent"), |path, _| {
        let most = weir_units::limits::CONTROL_CONNECTIONS;
        // some have asked before, some never, one only half
        let mut silent: Vec<Lines> = (0..most).map(|_| connect(path)).collect();
        assert!(is_ok(&ask_over(&mut silent[0], &Request::Status)));
        silent[1].write("{\"weir\":1,").unwrap();
        assert!(is_ok(&ask_over(&mut connect(path), &Request::Stop)));
    });
}

#[test]
fn silent_readers_of_metrics_delay_nobody() {
    served_with(World::new("silent-metrics"), |_, _, metrics| {
        let is_answered_first = || {
            let silent = [(); 5].map(|()| TcpStream::connect(metrics).unwrap());
            let mut stream = TcpStream::connect(metrics).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
            // whether the answer came before they were given up
            silent.into_iter().all(|mut stream| {
                stream.set_nonblocking(true).unwrap();
                let read = stream.read(&mut [0]).map_err(|error| error.kind());
                read == Err(std::io::ErrorKind::WouldBlock)
            })
        };
        // a machine that is busy for as long as a silent one may take proves nothing
        assert!((0..10).any(|_| is_answered_first()), "they are served one after the other");
    });
}

#[test]
fn a_policy_that_takes_for_ever_to_be_read_holds_up_nothing_else() {
    let world = World::new("fifo");
    let file = world.folder.0.join("p.toml");
    served(world, |path, signals| {
        std::fs::remove_file(&file).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());
        // nobody writes there, so that reading it does not end
        signals.send(Signal::Reload).unwrap();
        signals.send(Signal::Reload).unwrap();
        let mut lines = connect(path);
        for request in [Request::Status, Request::tree(true), Request::Metrics] {
            assert!(is_ok(&ask_over(&mut lines, &request)));
        }
        let observed = ask_over(&mut lines, &Request::Observe { on: true });
        assert_eq!(observed["mode"], "observe");
        // and the link is looked after as ever: `served` waits for that, and stops it
    });
}

#[test]
fn what_is_asked_after_a_change_is_of_the_new_policy() {
    served(World::new("anew"), |path, _| {
        let mut lines = connect(path);
        for rate in [5_u64, 6, 7, 8] {
            let class = format!("[class.\"/c{rate}\"]\nmatch = \"tcp\"\n");
            let text = policy(&format!("{rate}gbit")) + &class;
            assert!(is_ok(&ask_over(&mut lines, &apply(&text, None))));
            let tree = ask_over(&mut lines, &Request::tree(true));
            assert_eq!(tree["rows"][3]["class"], format!("/c{rate}"), "{tree:#}");
            assert_eq!(tree["rows"][0]["down"]["rate"], rate * 1_000_000_000);
            let status = ask_over(&mut lines, &Request::Status);
            assert_eq!(status["revision"]["number"], rate - 3);
        }
        assert!(is_ok(&ask_over(&mut lines, &Request::Rollback { to: None, comment: "x".into() })));
        let tree = ask_over(&mut lines, &Request::tree(true));
        assert_eq!(tree["rows"][0]["down"]["rate"], 7_000_000_000_u64);
    });
}

#[test]
fn a_large_request_is_read_and_refused_like_a_small_one() {
    served(World::new("large"), |path, _| {
        let mut lines = connect(path);
        let large = policy("5gbit") + &"# more\n".repeat(100_000);
        let answer = ask_over(&mut lines, &apply(&large, None));
        assert_eq!(
            (is_ok(&answer), &answer["revision"]["author"]),
            (true, &answer["revision"]["author"])
        );
        assert_eq!(answer["revision"]["number"], 2);
        let nonsense = ask_over(&mut lines, &apply(&"a=1\n".repeat(2_000_000), None));
        assert!(!is_ok(&nonsense) && nonsense.to_string().contains("more than 1048576 names"));
        // of two that are never finished, one is told
        let half = " ".repeat(2 * weir_units::limits::CONTROL_SMALL_BYTES);
        let mut halves = [(); 2].map(|()| std::os::unix::net::UnixStream::connect(path).unwrap());
        for stream in &mut halves {
            // the one who is refused is not listened to until the end
            let _ = stream.write_all(half.as_bytes());
            stream.set_nonblocking(true).unwrap();
        }
        let until = now() + Span::from_secs(60);
        let mut piece = [0; 1_000];
        let told = loop {
            assert!(now() < until, "nobody was told");
            if let Some(len) = halves.iter_mut().find_map(|stream| stream.read(&mut piece).ok()) {
                break String::from_utf8_lossy(&piece[..len]).into_owned();
            }
            std::thread::yield_now();
        };
        assert!(told.contains("another large request"), "{told}");
        assert!(is_ok(&ask_over(&mut lines, &Request::Status)));
    });
}

#[test]
fn an_old_snapshot_is_said_to_be() {
    let mut world = World::new("stale");
    let then = now();
    let (look, counted) = (world.asked.look(then), world.asked.count(then));
    let told = world.asked.control.told();
    for (later, stale) in [(Span::from_secs(2), None), (Span::from_secs(5), Some(5))] {
        let at = then + later;
        let status = crate::board::status(&told, Some(&look), at);
        let tree = crate::board::tree(&told, Some(&counted), (true, "", ""), at).unwrap();
        assert_eq!((status.stale_s, tree.stale_s), (stale, stale));
        let is_said = status.trouble.iter().any(|what| what.contains("not responded for 5 s"));
        assert_eq!(is_said, stale.is_some());
    }
    let metrics = crate::board::metrics(&told, Some(&look), None, then + Span::from_secs(5));
    assert!(metrics.contains("weir_snapshot_age_seconds{link=\"l\"} 5.000000000"), "{metrics}");
    world.stop();
}

#[test]
fn books_that_another_policy_has_written_meanwhile_are_not_read() {
    let mut world = World::new("terms");
    let terms = world.asked.control.told().terms;
    let classes = |world: &mut World, terms| {
        let report = world.asked.reader.report(terms).unwrap();
        report.map(|report| report.rows.len())
    };
    assert_eq!(classes(&mut world, &terms), Some(4));
    let more = policy("10gbit") + "[class.\"/c\"]\nmatch = \"tcp\"\n";
    assert!(is_ok(&world.ask(apply(&more, None))));
    assert_eq!(classes(&mut world, &terms), None);
    let now = world.asked.control.told();
    assert_eq!(classes(&mut world, &now.terms), Some(5));
    // nor told, if they were read before and come only now
    let board = Board::new(now);
    let mut late = || world.asked.count(weir_io::wait::now());
    assert!(!board.put_counted(late(), terms.version));
    let version = board.told().terms.version;
    assert!(board.put_counted(late(), version));
    world.stop();
}

#[test]
fn a_reload_without_a_policy_file_changes_nothing_and_is_no_trouble() {
    let folder = Folder::new("no-file");
    std::fs::write(folder.0.join("p.toml"), policy("10gbit")).unwrap();
    let named = Path::new(crate::control::COMMAND_LINE);
    let mut world = World::named(folder, "l", Box::new(|| {}), named);
    world.asked.control.reload(now(), 2_000);
    let status = world.ask(Request::Status);
    assert_eq!((&status["trouble"], &status["revision"]["number"]), (&json!([]), &json!(1)));
    assert_eq!(status["file"], "the command line");
    world.stop();
}

#[test]
fn metrics_are_fetched_as_prometheus_does() {
    served_with(World::new("metrics"), |_, _, metrics| {
        for _ in 0..2 {
            let mut stream = TcpStream::connect(metrics).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
            assert!(answer.contains("\nweir_packet_thread_alive{link=\"l\"} 1\n"), "{answer}");
        }
    });
}
