//! The E-model against values worked out apart from it, to the digits given.

use super::*;

/// `value` printed with as many digits as `expected` has.
#[track_caller]
fn reads(value: f64, expected: &str) {
    let digits = expected.split_once('.').map_or(0, |(_, after)| after.len());
    assert_eq!(format!("{value:.digits$}"), expected);
}

fn delayed(ms: f64) -> Rating {
    EModel { t: ms, ta: ms, tr: 2.0 * ms, ..EModel::default() }.rate()
}

fn g729a(ms: f64, loss: f64) -> Rating {
    EModel::call(codec("G.729A+VAD").unwrap(), ms, loss).rate()
}

#[test]
fn the_default_connection() {
    let all = EModel::default().rate();
    reads(all.no, "-61.1792");
    reads(all.ro, "94.7688");
    reads(all.iolr, "0.4402");
    reads(all.ist, "-0.0007");
    reads(all.iq, "0.9741");
    reads(all.is, "1.4136");
    reads(all.idle, "0.1490");
    reads(all.r, "93.206");
    reads(mos(all.r), "4.4094");
    assert_eq!((all.idte, all.idd, all.ie_eff), (0.0, 0.0, 0.0));
}

#[test]
fn opinions() {
    let printed = ["4.339", "4.024", "3.597", "3.100", "2.575", "2.064"];
    for (r, expected) in [90.0, 80.0, 70.0, 60.0, 50.0, 40.0].into_iter().zip(printed) {
        reads(mos(r), expected);
    }
    assert_eq!((mos(-3.0), mos(0.0), mos(100.0), mos(120.0)), (1.0, 1.0, 4.5, 4.5));
}

#[test]
fn delay() {
    let printed = [
        (50.0, "1.599"),
        (100.0, "2.692"),
        (150.0, "3.816"),
        (200.0, "7.551"),
        (300.0, "20.689"),
        (400.0, "31.108"),
        (500.0, "38.552"),
        (1000.0, "54.279"),
    ];
    printed.iter().for_each(|(ms, expected)| reads(delayed(*ms).id, expected));
    let alone = [
        (150.0, "0.164"),
        (200.0, "3.044"),
        (300.0, "14.761"),
        (400.0, "24.070"),
        (1000.0, "43.790"),
    ];
    alone.iter().for_each(|(ms, expected)| reads(delayed(*ms).idd, expected));
    let ratings =
        [(100.0, "90.66"), (150.0, "89.54"), (200.0, "85.80"), (300.0, "72.67"), (400.0, "62.25")];
    ratings.iter().for_each(|(ms, expected)| reads(delayed(*ms).r, expected));
}

#[test]
fn loss_under_g729a() {
    let printed = [
        (0.0, "11.00", "82.21", "4.105"),
        (1.0, "15.20", "78.01", "3.946"),
        (2.0, "19.00", "74.21", "3.788"),
        (3.0, "22.45", "70.75", "3.632"),
        (5.0, "28.50", "64.71", "3.340"),
        (10.0, "39.97", "53.24", "2.746"),
        (20.0, "54.08", "39.13", "2.022"),
    ];
    for (loss, ie_eff, r, opinion) in printed {
        let found = g729a(0.0, loss);
        reads(found.ie_eff, ie_eff);
        reads(found.r, r);
        reads(mos(found.r), opinion);
    }
}

#[test]
fn other_codecs_and_bursts() {
    let plc = EModel::call(codec("G.711+PLC").unwrap(), 0.0, 5.0);
    reads(plc.rate().ie_eff, "15.78");
    let pairs = EModel { burst_r: 2.0, ..EModel::call(codec("G.729A+VAD").unwrap(), 0.0, 2.0) };
    reads(pairs.rate().ie_eff, "19.40");
    assert_eq!(codec("G.999"), None);
}

#[test]
fn delay_and_loss_together() {
    let printed = [
        (50.0, 0.0, "80.76", "4.052"),
        (150.0, 1.0, "74.34", "3.793"),
        (200.0, 2.0, "66.80", "3.444"),
        (1000.0, 0.0, "28.08", "1.531"),
    ];
    for (ms, loss, r, opinion) in printed {
        let found = g729a(ms, loss);
        reads(found.r, r);
        reads(mos(found.r), opinion);
    }
}

#[test]
fn the_shortcut_is_near_up_to_300_ms() {
    // Cole and Rosenbluth, 2001: an independent fit of the same curve
    let shortcut = |d: f64| 0.024 * d + 0.11 * (d - 177.3).max(0.0);
    for ms in [100.0, 150.0, 200.0, 300.0] {
        assert!((shortcut(ms) - delayed(ms).id).abs() < 1.0, "at {ms} ms");
    }
    assert!(shortcut(1000.0) - delayed(1000.0).id > 50.0);
}

#[test]
fn far_from_the_defaults() {
    // the formulas of G.107 written down a second time, in Python, and printed to four digits
    let usual = EModel::default();
    let noisy = EModel { pr: 55.0, ps: 45.0, qdu: 8.0, ..usual }.rate();
    reads(noisy.no, "-56.8188");
    reads(noisy.nor, "-59.9534");
    reads(noisy.iq, "11.7060");
    reads(noisy.r, "76.1201");
    let loud = EModel { stmr: 5.0, t: 1.0, telr: 45.0, ..usual }.rate();
    reads(loud.ist, "4.1926");
    reads(loud.idte, "0.1932");
    reads(loud.r, "88.7705");
    let faint = EModel { stmr: 25.0, t: 50.0, telr: 45.0, ..usual }.rate();
    reads(faint.ist, "2.4808");
    reads(faint.idte, "10.6736");
    let patient = EModel { ta: 250.0, mt: 120.0, st: 0.5, slr: 12.0, ..usual };
    let patient = EModel { wepl: 60.0, tr: 40.0, a: 5.0, ..patient }.rate();
    reads(patient.idd, "6.3684");
    reads(patient.idle, "0.8895");
    reads(patient.r, "85.6340");
    let near = EModel { stmr: 25.0, t: 1.5, dr: -10.0, nfor: -55.0, ..usual }.rate();
    reads(near.no, "-52.8872");
    reads(near.idte, "2.4864");
    reads(near.r, "76.0829");
}

#[test]
fn who_calls_it_poor_is_as_the_recommendation_has_it() {
    // table B.1 of G.107
    for (r, percent) in [(90.0, 0.0), (70.0, 6.0), (60.0, 17.0), (50.0, 38.0)] {
        assert!((poor_or_worse(r) - percent).abs() < 0.5, "{r}: {}", poor_or_worse(r));
    }
    assert_eq!(format!("{:.4}", poor_or_worse(45.0)), "50.0000");
}
