//! What a policy can say, and what it comes to.

#[allow(dead_code)]
mod shared;

use shared::{LINK, plan, problems};
use weir_policy::plan::{NodeKind, Target};
use weir_units::Rate;

const DESIGN: &str = r#"
[link.office]
lan = "eth1"
wan = "eth2"
down = "100mbit"
up = "20mbit"
counts = "ethernet"
margin = "97%"

[group]
servers = ["10.0.1.0/24", "2001:db8:1::/64"]

[class."/voice"]
match = ["dscp ef", "udp port 5060-5061"]
rate = "2mbit"
priority = "realtime"

[class."/office"]
match = ["lan servers"]
rate = "40%"
ceil = "90%"

[class."/office/backup"]
match = ["lan servers, tcp port 873"]
ceil = "10mbit"
queue = "fair"
aqm = "codel"
tcp = { window = true, pace-acks = true, mss = "auto" }

[class."/guests"]
match = ["lan 10.0.9.0/24"]
each = "lan-host"
ceil = "20mbit"
session = { min = "1mbit", max = "8mbit", count = 20, host = 5, next = "wait" }

[class."/sites"]

[subscribers]
file = "subscribers.csv"
under = "/sites"
"#;

const TABLE: &str = "id,name,parent,addresses,down_rate,down_ceil,up_rate,up_ceil\n\
    s1,Ms One,,10.1.0.1,1mbit,10mbit,,2mbit\n";

#[test]
fn the_policy_of_the_handbook_is_valid_and_means_what_it_says() {
    let plan = plan(DESIGN, TABLE);
    let paths: Vec<&str> = plan.nodes.iter().map(|n| &*n.path).collect();
    assert_eq!(
        paths,
        [
            "/",
            "/voice",
            "/office",
            "/office/backup",
            "/office/(rest)",
            "/guests",
            "/guests/(others)",
            "/sites",
            "/sites/s1",
            "/(rest)"
        ]
    );
    let mbit = |n: u64| Rate::from_bps(n * 1_000_000);
    let shares = |path: &str| plan.node(plan.find(path).unwrap()).shares;
    assert_eq!(shares("/").down.rate, mbit(97));
    assert_eq!(shares("/").up.rate, mbit(20));
    assert_eq!(shares("/office").down.rate, Rate::from_bps(38_800_000));
    assert_eq!(shares("/office").up.ceil, mbit(18));
    assert_eq!(shares("/office/backup").up.ceil, mbit(10));
    // a class without a rate promises what its children promise
    assert_eq!(shares("/sites").down.rate, mbit(1));
    // 97 - 2 - 38.8 - 1 is for those without a rate: guests and the rest
    assert_eq!(shares("/guests").down.weight, 27_600_000);
    assert_eq!(shares("/(rest)").down.weight, 27_600_000);
    let NodeKind::Each(each) = &plan.nodes[5].kind else { panic!("/guests makes leaves") };
    assert_eq!(plan.node(each.others).path.as_ref(), "/guests/(others)");
}

#[test]
fn children_are_asked_before_their_parent_and_within_it() {
    let plan = plan(DESIGN, TABLE);
    let asked: Vec<(&str, Option<u32>)> =
        plan.asked.iter().map(|a| (&*plan.node(a.node).path, a.within)).collect();
    assert_eq!(
        asked,
        [
            ("/voice", None),
            ("/office/backup", Some(2)),
            ("/office", None),
            ("/guests", None),
            ("/sites", None)
        ]
    );
    assert_eq!(plan.asked[2].target, Target::Leaf(plan.find("/office/(rest)").unwrap()));
    assert_eq!(plan.asked[4].target, Target::Subscriber);
}

#[test]
fn leaves_take_words_from_above() {
    let text = format!(
        "{LINK}[class.\"/a\"]\nqueue = \"fair-host\"\naqm = \"pie\"\n\
         [class.\"/a/b\"]\nmatch = \"any\"\naqm = \"none\"\n"
    );
    let plan = plan(&text, "");
    let words = plan.words_of(plan.find("/a/b").unwrap());
    assert_eq!(words.queue, Some(weir_policy::Queue::FairHost));
    assert_eq!(words.aqm.unwrap().kind, weir_policy::AqmKind::None);
}

#[test]
fn every_word_can_be_said() {
    let text = format!(
        "{LINK}overhead = 18\nenforce = \"hsdba\"\nrouters = [\"02:00:00:00:00:09\"]\n\
         [group]\na = [\"10.0.0.0/8\", \"b\"]\nb = [\"fd00::/8\"]\n\
         [class.\"/x\"]\nlink = \"office\"\nwas = \"/y\"\nmatch = [\n\
         \"lan a, wan 192.0.2.0/24, tcp port 80-90, dscp af41, vlan 5, length 64-128, up\",\n\
         \"host b\", \"sctp lan port 5\", \"proto 47\", \"lan mac 02:00:00:00:00:01\", \"arp\",\n\
         \"untagged, ethertype 0x88cc, down\",\n\
         {{ when = \"udp\", bytes = {{ at = \"payload 2\", length = 2, value = 0x10, mask = 0xf0 }} }},\n]\n\
         each = {{ by = \"lan-prefix\", v4 = 30, v6 = 56, count = 9, age = \"1m\", ceil = \"50%\", \
         unknown = \"ask\", known = \"a\" }}\n\
         rate = {{ down = \"2mbit\", up = \"1mbit\" }}\nceil = \"50%\"\nweight = \"3mbit\"\n\
         priority = \"bulk\"\nburst = {{ down = \"15kb\", up = \"10ms\" }}\nenforce = \"queue\"\n\
         queue = \"fifo\"\nlimit = \"100 frames\"\necn = true\ndscp = \"cs1\"\n\
         aqm = {{ kind = \"wred\", min = \"10kb\", max = \"30kb\", probability = \"10%\" }}\n\
         tcp = {{ window = true, pace-acks = false, mss = 1300 }}\n\
         session = {{ min = \"10kbit\", max = {{ up = \"1mbit\" }}, count = 5, next = \"reject\" }}\n\
         police = {{ rate = \"1mbit\", burst = \"10kb\", peak = \"2mbit\", peak-burst = \"20kb\", excess = \"af13\" }}\n"
    );
    // what HSDBA does not do is a note, and all there is to say
    let said = problems(&text, "");
    assert!(
        matches!(&said[..], [note] if note.contains("note: \"/\" shares between its leaves")),
        "{said:?}"
    );
}

#[test]
fn routers_are_macs() {
    let said = |list: &str| {
        problems(&format!("{LINK}routers = {list}\n[class.\"/a\"]\nmatch = \"any\"\n"), "")
    };
    assert_eq!(said("[\"02:00:00:00:00:09\", \"AA-BB-CC-DD-EE-FF\"]"), [""; 0]);
    assert_eq!(said("\"02:00:00:00:00:09\""), [""; 0], "one alone");
    for (list, wrong) in [("[\"10.0.0.1\"]", "\"10.0.0.1\""), ("7", "a number")] {
        let said = said(list);
        let what = format!("\"routers\" cannot be {wrong}: it is not a MAC address");
        let cure = "routers = [\"02:00:5e:10:00:01\"]";
        let is_told = |said: &String| said.contains(&what) && said.contains(cure);
        assert!(said.len() == 1 && said.iter().all(is_told), "{said:?}");
    }
    let macs = |count: u8| {
        let macs = (0..count).map(|n| format!("\"02:00:00:00:00:{n:02x}\""));
        format!("[{}]", macs.collect::<Vec<_>>().join(", "))
    };
    assert_eq!(said(&macs(64)), [""; 0]);
    let said = said(&macs(65));
    assert!(said.len() == 1 && said[0].contains("names 65 MAC addresses"), "{said:?}");
    let plan = plan(
        &format!("{LINK}routers = [\"02:00:00:00:00:09\"]\n[class.\"/a\"]\nmatch = \"any\"\n"),
        "",
    );
    assert_eq!(plan.routers, [[2, 0, 0, 0, 0, 9]]);
}

#[test]
fn guarantees_under_weirs_allocator_fit_into_199_of_200_parts() {
    let class = |rate| {
        format!(
            "{LINK}enforce = \"weir\"\n[class.\"/a\"]\nmatch = \"any\"\nrate = {{ up = \"{rate}\" }}\n"
        )
    };
    // above 99 % it is a warning: the rest of the link is guaranteed nothing, and has traffic too
    assert_eq!(problems(&class("19800kbit"), ""), Vec::<String>::new());
    for rate in ["19801kbit", "19900kbit"] {
        let said = problems(&class(rate), "");
        assert!(said.len() == 1 && said[0].contains("warning: the classes below"), "{said:?}");
    }
    let said = problems(&class("19901kbit"), "");
    assert!(
        said.len() == 1 && said[0].contains("199/200") && said[0].contains("1kbit"),
        "{said:?}"
    );
}

#[test]
fn a_guarantee_that_is_not_always_whole_is_a_warning() {
    let text = |link: &str, rates: [&str; 2]| {
        let [a, b] = rates;
        format!(
            "[link.l]\nlan = \"eth1\"\nwan = \"eth2\"\ndown = \"100mbit\"\nup = \"100mbit\"\n{link}\n\
             [class.\"/a\"]\n{a}\n[class.\"/a/b\"]\nmatch = \"tcp\"\n{b}\n\
             [class.\"/a/c\"]\nmatch = \"udp\"\n"
        )
    };
    // the link is found, and what is used of it at the best is less than what was told
    let auto = "margin = { down = \"auto\" }";
    let fits = ["rate = \"90mbit\"", "rate = \"89.1mbit\""];
    let said = |link: &str, rates| {
        let all = problems(&text(link, rates), "").into_iter();
        all.filter(|line| !line.contains(" note: ")).collect::<Vec<_>>()
    };
    assert_eq!(said(auto, fits), Vec::<String>::new());
    let high = ["rate = { down = \"97mbit\" }", "rate = { down = \"10mbit\" }"];
    assert_eq!(
        said(auto, high),
        [concat!(
            r#"weir.toml:1:7 warning: the classes below link "l" are guaranteed 97mbit down "#,
            r#"and do not always get all of it: margin = "auto" uses at most 97mbit of "#,
            r#"100mbit; they get 96.03mbit while "/(rest)", which has no guarantee, "#,
            "has traffic (reduce their rates by 970kbit)"
        )]
    );
    let all = ["rate = \"90mbit\"", "rate = \"90mbit\""];
    assert_eq!(
        said(auto, all),
        [concat!(
            r#"weir.toml:8:8 warning: the classes below "/a" are guaranteed 90mbit down and "#,
            r#"do not always get all of it: they get 89.1mbit while "/a/c", which has "#,
            "no guarantee, has traffic (reduce their rates by 900kbit)"
        )]
    );
    // a class without a rate has what its children are promised, and one of them is promised nothing
    let none = ["", "rate = { up = \"49.5mbit\" }"];
    assert_eq!(
        said(auto, none),
        [concat!(
            r#"weir.toml:7:8 warning: the classes below "/a" are guaranteed 49.5mbit up and do "#,
            r#"not always get all of it: "/a" has no rate of its own and is guaranteed the sum "#,
            r#"of theirs; they get 49.005mbit while "/a/c", which has no guarantee, has traffic "#,
            r#"(give "/a" a rate of 50mbit or more)"#
        )]
    );
    assert_eq!(said(auto, ["rate = \"50mbit\"", "rate = \"49.5mbit\""]), Vec::<String>::new());
}

#[test]
fn the_199_parts_are_those_of_the_top_of_what_weirs_allocator_holds() {
    let text = |link: &str, a: &str, b: &str, rate: &str| {
        format!(
            "{LINK}{link}\n[class.\"/a\"]\n{a}\n[class.\"/a/b\"]\n{b}\n\
             [class.\"/a/b/c\"]\nmatch = \"any\"\nrate = {{ up = \"{rate}\" }}\n"
        )
    };
    let weir = "enforce = \"weir\"";
    let ten = format!("{weir}\nrate = {{ up = \"10mbit\" }}");
    // 199/200 of 10 mbit are 9950 kbit; with a rate, and without one by the ceiling
    let ceil = format!("{weir}\nceil = \"10mbit\"");
    for a in [&ten, &ceil] {
        assert_eq!(problems(&text("", a, "", "9950kbit"), ""), Vec::<String>::new(), "{a}");
        let said = problems(&text("", a, "", "9951kbit"), "");
        assert!(said.len() == 1 && said[0].contains("199/200"), "{said:?}");
        assert!(said[0].contains("below \"/a\""), "{said:?}");
    }
    // below the top all of it can be promised, and to write an inherited word again changes nothing
    let all = "rate = { up = \"9mbit\" }";
    for b in [all.to_owned(), format!("{weir}\n{all}")] {
        assert_eq!(problems(&text("", &ten, &b, "9mbit"), ""), Vec::<String>::new(), "{b}");
        assert_eq!(problems(&text(weir, &ten, &b, "9mbit"), ""), Vec::<String>::new(), "{b}");
    }
    assert_eq!(problems(&text(weir, &ten, "", "10mbit"), ""), Vec::<String>::new());
    // what lies below another kind is a top again
    let again = text(weir, "enforce = \"queue\"", &ten, "10mbit");
    assert!(problems(&again, "").iter().any(|s| s.contains("199/200")));
}

#[test]
fn who_has_no_rate_weighs_a_hundredth_of_the_parent_at_least() {
    let text = format!(
        "{LINK}[class.\"/a\"]\nmatch = \"up\"\nrate = \"100%\"\n\
         [class.\"/b\"]\nmatch = \"any\"\n"
    );
    let plan = plan(&text, "");
    let weights: Vec<u64> = plan.nodes[1..].iter().map(|n| n.shares.up.weight).collect();
    assert_eq!(weights, [20_000_000, 200_000, 200_000]);
}

#[test]
fn a_weight_beside_siblings_is_of_their_kind() {
    let text = format!(
        "{LINK}[class.\"/a\"]\nmatch = \"up\"\nweight = 3\n[class.\"/b\"]\nmatch = \"down\"\nweight = 2\n"
    );
    let plan = plan(&text, "");
    let weights: Vec<u64> = plan.nodes[1..].iter().map(|n| n.shares.down.weight).collect();
    assert_eq!(weights, [3, 2, 2], "the rest weighs as much as the least");
}

#[test]
fn who_is_approved_is_said_in_the_terms_of_the_leaves() {
    let class = |each: &str| {
        format!(
            "{LINK}[group]\nstaff = [\"10.1.0.0/24\", \"10.2.0.7\"]\n\
            [class.\"/a\"]\nmatch = \"any\"\neach = {{ {each} }}\n"
        )
    };
    let known = |each: &str| match &plan(&class(each), "").node(1).kind {
        NodeKind::Each(each) => each.known.as_ref().map(Vec::len),
        _ => None,
    };
    assert_eq!(known("by = \"lan-host\""), None);
    assert_eq!(known("by = \"lan-host\", unknown = \"ask\""), Some(0));
    assert_eq!(
        known("by = \"lan-host\", unknown = \"ask\", known = [\"staff\", \"2001:db8::/64\"]"),
        Some(3)
    );
    assert_eq!(
        known("by = \"lan-mac\", unknown = \"ask\", known = \"02:00:5e:10:00:01\""),
        Some(1)
    );
    assert_eq!(known("by = \"vlan\", unknown = \"ask\", known = [10, 20]"), Some(2));
    let said = problems(&class("by = \"lan-host\", unknown = \"ask\", known = [\"nobody\"]"), "");
    assert!(said.concat().contains("not an address, a block or a group"), "{said:?}");
    let said = problems(&class("by = \"lan-host\", known = [\"staff\"]"), "");
    assert!(said.concat().contains("every host gets a leaf"), "{said:?}");
}
