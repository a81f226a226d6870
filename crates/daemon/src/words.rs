//! The policy of a link of which only the ports and the line are known: calls and name service
//! first, then each host its turn, and each connection of the host.

use std::fmt::Write as _;

use weir_units::Rate;

/// What stands on the command line instead of a policy.
#[derive(Clone, Debug)]
pub(crate) struct Wire<'a> {
    pub(crate) lan: &'a str,
    pub(crate) wan: &'a str,
    pub(crate) down: Rate,
    pub(crate) up: Rate,
    pub(crate) margin: Option<&'a str>,
}

/// The policy as text, so that it is checked, shown and kept like any other, and can be edited.
pub(crate) fn policy(link: &str, wire: &Wire<'_>) -> String {
    let Wire { lan, wan, down, up, margin } = wire;
    let mut text = format!(
        "# Written by `weir run --lan {lan} --wan {wan} --down {down} --up {up}`.\n\n\
         [link.\"{link}\"]\nlan = {lan:?}\nwan = {wan:?}\ndown = \"{down}\"\nup = \"{up}\"\n"
    );
    let _ = writeln!(text, "margin = \"{}\"", margin.unwrap_or("auto"));
    text.push_str(CLASSES);
    text
}

const CLASSES: &str = r#"
# Calls: marked by the application, or on the ports that SIP, WebRTC and conferences use.
[class."/calls"]
match = ["dscp ef", "udp port 5060-5061", "udp wan port 3478-3481"]
rate = "20%"
priority = "realtime"

# What everything else waits for.
[class."/names"]
match = ["udp wan port 53", "udp port 123", "arp"]
rate = "2%"
priority = "interactive"

# Everything else: each host its turn, each connection of the host its turn.
[class."/all"]
match = ["any"]
queue = "fair-host"
ecn = true
"#;

#[cfg(test)]
mod tests {
    use weir_policy::Severity;

    use super::*;

    #[test]
    fn a_wire_without_a_policy_has_one_that_is_fine() {
        for (down, up) in [(100_000_000, 20_000_000), (1_000_000, 128_000), (10_000_000_000, 1)] {
            let (down, up) = (Rate::from_bps(down), Rate::from_bps(up.max(64_000)));
            let wire = Wire { lan: "eth1", wan: "eth2.100", down, up, margin: Some("95%") };
            let source = weir_policy::Source::new("wire", policy("wire", &wire));
            let reading = weir_policy::read(source, &mut |_| Err(String::new())).unwrap();
            // notes tell which class an overlap goes to
            let worst = reading.problems.iter().map(|problem| problem.severity).min();
            assert!(worst.is_none_or(|worst| worst == Severity::Note), "{:?}", reading.problems);
            assert_eq!((&*reading.plans[0].lan, &*reading.plans[0].wan), ("eth1", "eth2.100"));
        }
    }
}
