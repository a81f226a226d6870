//! The command as a user calls it: what it prints, where, and with which exit status.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of its own for one test, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("a file for the test");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn weir<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(arguments).output().expect("weir runs")
}

/// Exit status, standard output, standard error.
fn said<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> (i32, String, String) {
    let output = weir(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("an exit status"), text(&output.stdout), text(&output.stderr))
}

fn check(path: &Path) -> (i32, String, String) {
    said(&["check".as_ref(), path.as_os_str()])
}

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(folder).expect("examples/").map(|f| f.expect("a file").path());
    let mut policies: Vec<PathBuf> =
        files.filter(|f| f.extension().is_some_and(|e| e == "toml")).collect();
    policies.sort();
    assert!(policies.len() >= 6, "{policies:?}");
    policies
}

const LINK: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"10mbit\"\nup = \"10mbit\"\n";

#[test]
fn every_example_is_fine_and_in_canonical_form() {
    for policy in examples() {
        let (status, out, err) = check(&policy);
        assert_eq!(status, 0, "{policy:?}: {err}");
        assert!(out.contains(": no errors; "), "{out}");
        assert!(!err.contains("warning"), "{err}");
        let (status, _, err) = said(&["fmt".as_ref(), "--check".as_ref(), policy.as_os_str()]);
        assert_eq!(status, 0, "{err}");
    }
}

#[test]
fn what_cannot_be_read_is_said_with_status_2() {
    let folder = Folder::new("unreadable");
    let mut random = 1u64;
    let noise: Vec<u8> = (0..100 << 20)
        .map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 56) as u8
        })
        .collect();
    let large = folder.write("random", &noise);
    let small = folder.write("small", &noise[..10_000]);
    let not_text = folder.write("latin1.toml", b"# caf\xe9\n");
    for (path, part) in [
        (large.as_path(), "104.8576mb"),
        (small.as_path(), "not text"),
        (not_text.as_path(), "latin1.toml:1:6"),
        (folder.0.as_path(), "directory"),
        (&folder.0.join("missing.toml"), "no such file"),
    ] {
        let (status, out, err) = check(path);
        assert_eq!((status, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(part) && !err.contains("panicked"), "{part}: {err}");
        assert!(err.lines().count() <= 2, "{err}");
    }
}

#[test]
fn a_wrong_call_is_status_2_and_help_is_0() {
    assert_eq!(said::<&str>(&[]).0, 2);
    let (status, _, err) = said(&["chekc", "x"]);
    assert!(status == 2 && err.contains("check"), "{err}");
    assert_eq!(said(&["explain", "x"]).0, 2);
    let (status, out, _) = said(&["--help"]);
    assert!(status == 0 && out.contains("replay") && out.contains("Exit status"));
}

#[test]
fn problems_go_to_standard_error_with_place_and_cure_and_status_1() {
    let folder = Folder::new("problems");
    let policy =
        folder.write("p.toml", format!("{LINK}[class.\"/a\"]\nmatch = \"any\"\nrtae = 1\n"));
    let (status, out, err) = check(&policy);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(err.contains("p.toml:8:1") && err.contains("did you mean \"rate\"?"), "{err}");
}

#[test]
fn three_bad_rows_of_a_hundred_thousand_are_named_and_the_others_load() {
    let folder = Folder::new("rows");
    let policy = folder.write("p.toml", format!("{LINK}[subscribers]\nfile = \"s.csv\"\n"));
    let mut table = "id,name,parent,addresses,down_rate,down_ceil,up_rate,up_ceil\n".to_owned();
    for n in 0..100_000u32 {
        let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + n);
        let down = if n % 40_000 == 5 { "fast" } else { "10mbit" };
        table += &format!("s{n},,,{address},,{down},,\n");
    }
    folder.write("s.csv", table);
    let (status, _, err) = check(&policy);
    assert_eq!(status, 1);
    assert!(err.contains("3 rows skipped"), "{err}");
    assert_eq!(err.matches("because \"down_ceil\" cannot be \"fast\"").count(), 1, "{err}");
    assert!(err.contains("(rows 7, 40007, 80007)"), "{err}");
    let (_, _, err) = said(&["check".as_ref(), policy.as_os_str(), "-v".as_ref()]);
    for line in [7, 40_007, 80_007] {
        assert!(err.contains(&format!("s.csv:{line}: skipped because")), "{err}");
    }
    // and it is not applied by mistake
    let missing = folder.0.join("l.sock");
    let (status, _, err) = ask(&missing, &["apply", policy.to_str().expect("a path")]);
    assert!(status == 1 && err.contains("--allow-skipped"), "{err}");
    let allowed = ["apply", policy.to_str().expect("a path"), "--allow-skipped"];
    let (status, _, err) = ask(&missing, &allowed);
    assert!(status == 2 && err.contains("no link runs"), "{err}");
    let packet = "tcp 10.0.0.9:1000 > 192.0.2.1:80";
    let (status, out, _) =
        said(&["explain".as_ref(), policy.as_os_str(), "-p".as_ref(), packet.as_ref()]);
    assert_eq!(status, 0);
    assert!(out.contains("/s9"), "{out}");
}

#[test]
fn explain_names_class_rule_and_limits() {
    let office = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/office.toml");
    let explain = |packet: &str, from: &str| {
        let office = office.to_str().expect("a path of text");
        let (status, out, err) = said(&["explain", office, "--packet", packet, "--from", from]);
        assert_eq!(status, 0, "{err}");
        out
    };
    let out = explain("udp 10.0.0.5:5060 > 192.0.2.1:5060 dscp ef", "lan");
    assert!(out.contains("classify  /voice by \"dscp ef\""), "{out}");
    assert!(out.contains("/ (link office): 20mbit"), "{out}");
    let out = explain("tcp 192.0.2.1:873 > 10.0.1.5:5000", "wan");
    assert!(out.contains("/office/backup by \"tcp port 873\""), "{out}");
    assert!(out.contains("/office: guaranteed 38.8mbit, ceiling 87.3mbit"), "{out}");
    let out = explain("tcp 10.0.9.7:5000 > 192.0.2.1:80", "lan");
    assert!(out.contains("/guests/10.0.9.7"), "{out}");
    let (status, _, err) = said(&["explain", office.to_str().expect("text"), "-p", "upd 1.2.3.4"]);
    assert!(status == 2 && err.contains("udp, tcp"), "{err}");
    let office = office.to_str().expect("text");
    let packet = "tcp 10.0.0.1:1 > 192.0.2.1:2";
    let (status, _, err) = said(&["explain", office, "-p", packet, "--link", "home"]);
    assert!(status == 2 && err.contains("no link \"home\"; the policy has office"), "{err}");
}

#[test]
fn diff_tells_what_changes_in_words() {
    let folder = Folder::new("diff");
    let a = folder
        .write("a.toml", format!("{LINK}[class.\"/a\"]\nmatch = \"any\"\nrate = \"1mbit\"\n"));
    let b = folder
        .write("b.toml", format!("{LINK}[class.\"/a\"]\nmatch = \"any\"\nrate = \"2mbit\"\n"));
    let (status, out, _) = said(&["diff".as_ref(), a.as_os_str(), b.as_os_str()]);
    assert_eq!((status, out.as_str()), (0, "~ /a  rate 1mbit -> 2mbit\n"));
    let (_, out, _) = said(&["diff".as_ref(), a.as_os_str(), a.as_os_str()]);
    assert_eq!(out, "no difference in meaning\n");
}

#[test]
fn fmt_writes_once_and_leaves_what_it_cannot_read() {
    let folder = Folder::new("fmt");
    let text = format!("{LINK}[class.\"/a\"]\nrate='1000kbit'\nmatch=\"any\"\n");
    let policy = folder.write("p.toml", &text);
    let fmt = |mode: &str| said(&["fmt".as_ref(), mode.as_ref(), policy.as_os_str()]);
    assert_eq!(fmt("--check").0, 1);
    assert!(fmt("--stdout").1.contains("match = \"any\"\nrate = \"1mbit\""));
    assert_eq!(said(&["fmt".as_ref(), policy.as_os_str()]).0, 0);
    assert_eq!(fmt("--check").0, 0);
    let broken = folder.write("broken.toml", "[class\n");
    assert_eq!(said(&["fmt".as_ref(), broken.as_os_str()]).0, 1);
    assert_eq!(std::fs::read(&broken).expect("still there"), b"[class\n");
}

#[test]
fn the_tour_leaves_files_and_the_replay_balances() {
    let folder = Folder::new("tour");
    let path = folder.0.to_str().expect("a path of text");
    let (status, out, err) = said(&["demo", "--virtual", "--folder", path]);
    assert_eq!(status, 0, "{err}");
    assert!(out.contains("did you mean \"priority\"?") && out.contains("/calls"), "{out}");
    let (capture, policy) = (format!("{path}/evening.pcap"), format!("{path}/home.toml"));
    let replay = |json: &str| said(&["replay", &capture, "--policy", &policy, "--json", json]);
    let (status, out, err) = replay("-");
    assert_eq!(status, 0, "{err}");
    assert_eq!(replay("-").1, out, "the same run twice");
    let result: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let link = &result["classes"][0];
    let frames = |value: &serde_json::Value| value["frames"].as_u64().expect("a number");
    let mut received = 0;
    for way in ["down", "up"] {
        let way = &link[way];
        let reasons = way["dropped"].as_object().expect("an object");
        let dropped: u64 = reasons.values().map(frames).sum();
        assert_eq!(frames(&way["received"]), frames(&way["sent"]) + dropped);
        assert_eq!(frames(&way["held"]), 0);
        received += frames(&way["received"]);
    }
    assert_eq!(Some(received), result["frames"].as_u64());
    let class = |path: &str| {
        let classes = result["classes"].as_array().expect("a list");
        classes.iter().find(|c| c["class"] == path).expect("a class").clone()
    };
    let lost = |path: &str| {
        let up = &class(path)["up"];
        frames(&up["received"]) - frames(&up["sent"])
    };
    assert!(lost("/backup") > 0, "the backup overloads the uplink");
    assert_eq!((lost("/calls"), lost("/games"), lost("/all")), (0, 0, 0), "and only it pays");
    let delay = class("/calls")["up"]["delay_ns_max"].as_u64().expect("a number");
    // one full frame at 20 Mbit/s takes 0.607 ms, and a call has only one before it
    assert!(delay < 1_300_000, "the call waited {delay} ns");
}

#[test]
fn a_capture_that_is_none_is_said() {
    let folder = Folder::new("captures");
    let policy = folder.write("p.toml", LINK);
    let text = folder.write("notes.pcap", "these are notes and no capture at all, really\n");
    let empty = folder.write("empty.pcap", "");
    for (capture, part) in [
        (&text, "text"),
        (&empty, "empty"),
        (&folder.0, "directory"),
        (&folder.0.join("x"), "no such"),
    ] {
        let arguments = ["replay".as_ref(), capture.as_os_str(), "-p".as_ref(), policy.as_os_str()];
        let (status, _, err) = said(&arguments);
        assert!(status == 2 && err.contains(part), "{capture:?}: {status} {err}");
    }
}

#[test]
fn every_reason_to_drop_is_documented() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/drops.md");
    let text = std::fs::read_to_string(file).expect("docs/drops.md");
    for reason in weir_packet::Reason::all() {
        let row = format!("| `{}` | {} |", reason.name(), reason.meaning());
        assert!(text.contains(&row), "docs/drops.md has no row {row}");
    }
}

/// A classic pcap of raw IP packets or Ethernet frames with the given times in seconds.
fn pcap(link: u32, records: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link] {
        file.extend(u32::to_le_bytes(word));
    }
    for (at, bytes) in records {
        let length = u32::try_from(bytes.len()).expect("is small");
        for word in [*at, 0, length, length] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend(bytes);
    }
    file
}

fn replay_json(folder: &Folder, capture: Vec<u8>, link: &str) -> serde_json::Value {
    let policy = folder.write("p.toml", link);
    let capture = folder.write("c.pcap", capture);
    let arguments: [&std::ffi::OsStr; 6] = [
        "replay".as_ref(),
        capture.as_os_str(),
        "--policy".as_ref(),
        policy.as_os_str(),
        "--json".as_ref(),
        "-".as_ref(),
    ];
    let (status, out, err) = said(&arguments);
    assert_eq!(status, 0, "{err}");
    serde_json::from_str(&out).expect("JSON")
}

#[test]
fn odd_captures_are_replayed_at_once_and_what_is_odd_is_counted() {
    let folder = Folder::new("odd");
    let frame = |text: &str| text.parse::<weir_packet::Build>().expect("a packet").to_vec();
    let up = frame("udp 10.0.0.5:1 > 192.0.2.1:2");
    // 136 years between two frames take no time, and the record that goes back is told
    let times = [0, 5, u32::MAX, 7].map(|at| (at, up.clone()));
    let result = replay_json(&folder, pcap(1, &times), LINK);
    assert_eq!(result["backward_records"], 1);
    assert_eq!(result["frames"], 4);
    // raw IP has no MACs from which a side could be learnt
    let foreign = frame("udp 198.51.100.1:1 > 192.0.2.1:2");
    let raw = [&up, &foreign, &up, &foreign].map(|f| (1, f[14..].to_vec()));
    let result = replay_json(&folder, pcap(101, &raw), LINK);
    assert_eq!(result["guessed_sides"], 2);
    // a link of 1 kbit/s carries 1 kbit/s, however fast the frames came
    let slow = LINK.replace("10mbit", "1kbit");
    let policy = folder.write("slow.toml", slow);
    let big = frame("udp 10.0.0.5:1 > 192.0.2.1:2 length 1000");
    let capture = folder.write("slow.pcap", pcap(1, &vec![(1, big); 20]));
    let arguments = ["replay".as_ref(), capture.as_os_str(), "-p".as_ref(), policy.as_os_str()];
    let (_, out, _) = said(&arguments);
    assert!(out.contains("1.04kbit") || out.contains("1.05kbit"), "{out}");
}

#[test]
fn two_links_count_each_their_own() {
    let folder = Folder::new("links");
    let text = format!(
        "{LINK}{}[class.\"/s\"]\nlink = \"l\"\n[subscribers]\nfile = \"s.csv\"\nunder = \"/s\"\n",
        LINK.replace("link.l", "link.m").replace("\"a\"", "\"c\"").replace("\"b\"", "\"d\"")
    );
    let policy = folder.write("p.toml", text);
    folder.write("s.csv", "id,addresses\na,10.0.0.1\nb,10.0.0.2\n");
    let (status, out, err) = check(&policy);
    assert_eq!(status, 0, "{err}");
    assert!(out.contains("link l") && out.contains("2 subscribers"), "{out}");
    assert_eq!(out.matches("subscribers").count(), 1, "{out}");
}

#[test]
fn figures_as_json_are_json_and_nothing_else() {
    let arguments = ["bench", "policy", "--rows", "10", "--rounds", "1", "--json", "-"];
    let (status, out, _) = said(&arguments);
    assert_eq!(status, 0);
    let figures: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(figures["metrics"]["policy_ms"].is_number());
}

/// A running link that answers each request with the next of these lines.
fn link(name: &str, answers: Vec<&'static str>) -> (PathBuf, std::thread::JoinHandle<Vec<String>>) {
    use std::io::{BufRead as _, BufReader, Write as _};
    // the name of a socket may have 107 bytes and no more
    let path = std::env::temp_dir().join(format!("weir-{}-{name}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody asks");
        let mut lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
        let mut asked = Vec::new();
        for answer in answers {
            asked.extend(lines.next().map(|line| line.expect("a line")));
            stream.write_all(format!("{answer}\n").as_bytes()).expect("it is read");
        }
        asked
    });
    (path, asked)
}

fn ask(path: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut all: Vec<&std::ffi::OsStr> = arguments.iter().map(AsRef::as_ref).collect();
    all.extend(["--socket".as_ref(), path.as_os_str()]);
    let said = said(&all);
    let _ = std::fs::remove_file(path);
    said
}

#[test]
fn where_no_weir_runs_that_is_said_with_status_2() {
    let folder = Folder::new("nobody");
    let missing = folder.0.join("l.sock");
    for command in ["status", "tree", "history", "confirm", "rollback", "observe", "stop"] {
        let (status, out, err) = ask(&missing, &[command]);
        assert_eq!((status, out.as_str()), (2, ""), "{command}: {err}");
        assert!(err.contains("no link runs at") && err.contains("weir run -c POLICY"), "{err}");
    }
    let (path, asked) = link("dead", vec![]);
    drop(std::os::unix::net::UnixStream::connect(&path));
    asked.join().expect("it ended");
    let (status, _, err) = ask(&path, &["status"]);
    assert!(status == 2 && err.contains("has ended"), "{err}");
}

#[test]
fn a_policy_is_checked_before_anybody_is_asked() {
    let folder = Folder::new("apply");
    let bad = folder.write("p.toml", LINK.replace("10mbit", "10mbti"));
    let missing = folder.0.join("l.sock");
    let (status, out, err) = ask(&missing, &["apply", bad.to_str().expect("a path")]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(err.contains("p.toml:4:8") && !err.contains("no link runs"), "{err}");
    let good = folder.write("p.toml", LINK);
    let (status, _, err) = ask(&missing, &["apply", good.to_str().expect("a path")]);
    assert!(status == 2 && err.contains("no link runs"), "{err}");
    for span in ["0s", "1500ms", "2000h", "soon"] {
        let arguments = ["apply", good.to_str().expect("a path"), "--confirm", span];
        let (status, _, err) = ask(&missing, &arguments);
        assert!(status == 2 && err.contains("--confirm"), "{err}");
    }
}

#[test]
fn a_change_travels_with_its_table_and_the_answer_is_told() {
    let folder = Folder::new("travels");
    let text = format!("{LINK}[subscribers]\nfile = \"s.csv\"\n");
    let policy = folder.write("p.toml", &text);
    let table = "id,name,parent,addresses,down_rate,down_ceil,up_rate,up_ceil\n";
    folder.write("s.csv", table);
    let (path, asked) = link(
        "travels",
        vec![
            r#"{"weir":1,"ok":true,"revision":{"number":8},"new":true,"changes":["~ /a  b"],
               "confirm":{"left_s":60,"goes_back_to":7},"history_trouble":"it is full"}"#,
        ]
        .into_iter()
        .map(|answer| &*answer.replace('\n', " ").leak())
        .collect(),
    );
    let file = policy.to_str().expect("a path");
    let (status, out, err) = ask(&path, &["apply", file, "--confirm", "1m", "--comment", "why"]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(
        out.starts_with("~ /a  b\nrevision 8 is in effect; revision 7 will be restored in 60 s")
    );
    assert!(out.contains("unless you run: weir confirm\n") && out.contains("it is full"), "{out}");
    let asked = asked.join().expect("it was asked");
    let request = &asked[0];
    assert!(request.contains("\"confirm_s\":60") && request.contains("\"comment\":\"why\""));
    assert!(request.contains(&table.replace('\n', "\\n")), "{request}");
}

#[test]
fn status_is_1_while_something_is_wrong() {
    for (trouble, expected) in [("[]", 0), ("[\"it is full: make room\"]", 1)] {
        for form in [&["status"][..], &["status", "--json"]] {
            let answer = format!("{{\"weir\":1,\"ok\":true,\"trouble\":{trouble}}}");
            let (path, asked) = link(&format!("status-{expected}"), vec![answer.leak()]);
            let (status, out, err) = ask(&path, form);
            assert_eq!((status, err.as_str()), (expected, ""));
            assert_eq!(out.contains("it is full: make room"), expected == 1, "{out}");
            asked.join().expect("it was asked");
        }
    }
}

#[test]
fn what_a_link_refuses_is_said_with_whose_fault_it_is() {
    for (fault, expected) in [("content", 1), ("call", 2), ("cannot", 2)] {
        let answer = format!(
            "{{\"weir\":1,\"ok\":false,\
             \"error\":{{\"fault\":\"{fault}\",\"what\":\"no\",\"cure\":\"do\"}}}}"
        );
        let (path, asked) = link(&format!("refused-{fault}"), vec![answer.leak()]);
        let (status, out, err) = ask(&path, &["confirm"]);
        assert_eq!((status, out.as_str(), err.as_str()), (expected, "", "weir: no: do\n"));
        assert_eq!(asked.join().expect("asked"), ["{\"weir\":1,\"do\":\"confirm\"}"]);
    }
    let (path, _) = link("nonsense", vec!["hello"]);
    let (status, _, err) = ask(&path, &["history"]);
    assert!(status == 2 && err.contains("the response cannot be read"), "{err}");
}

#[test]
fn an_experiment_runs_at_the_size_of_its_paper_where_it_has_another() {
    let folder = Folder::new("full");
    let scenario = "[scenario]\nrun = \"{long}\"\n[size]\nlong = [\"1s\", \"2s\"]\n\
        [node.a]\n[node.b]\n[link.line]\nbetween = [\"a\", \"b\"]\n\
        [flow.one]\nfrom = \"a\"\nto = \"b\"\nsource = \"cbr\"\nrate = \"800kbit\"\n\
        [metric.bytes]\nkind = \"bytes\"\nflows = [\"one\"]\n[profile.none]\n";
    let path = folder.write("sized.toml", scenario).display().to_string();
    let bytes = |more: &[&str]| {
        let arguments = [&["lab", "run", &path, "--json", "-"][..], more].concat();
        let (status, out, _) = said(&arguments);
        assert_eq!(status, 0, "{out}");
        let value: serde_json::Value = serde_json::from_str(&out).expect("is JSON");
        (value["metrics"]["bytes"].as_f64().expect("a number"), value["full"].clone())
    };
    let (usual, is_full) = bytes(&[]);
    assert!(is_full.is_null());
    let (full, is_full) = bytes(&["--full"]);
    assert_eq!(is_full, true);
    assert!(full > 1.9 * usual, "{full} {usual}");
    // one that has no other says so, and runs
    let (status, out, error) = said(&["lab", "run", "hsdba-example", "--full"]);
    assert_eq!(status, 0, "{error}");
    assert!(error.contains("hsdba-example: runs at the paper's size already"), "{error}");
    assert!(out.starts_with("hsdba-example: virtual driver, one seed\n"), "{out}");
}
