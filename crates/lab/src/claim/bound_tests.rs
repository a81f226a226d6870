use super::*;
use crate::result::over_seeds;

fn check(bound: &str) -> Found {
    let ours = over_seeds(&[vec![
        ("sum", 0.25),
        ("mean.ep1", 0.102),
        ("mean.ep2", 0.093),
        ("mean.ep3", 0.049),
        ("count", 2467.0),
    ]]);
    let none = over_seeds(&[vec![
        ("sum", 0.252),
        ("mean.ep1", 0.09),
        ("mean.ep2", 0.08),
        ("mean.ep3", 0.08),
    ]]);
    let figures = |profile: &str| match profile {
        "weir" => Some(&ours),
        "none" => Some(&none),
        _ => None,
    };
    bound.parse::<Bound>().unwrap().check(&figures)
}

#[test]
fn bounds_that_hold_and_that_do_not() {
    let cases = [
        ("sum <= 0.25", true),
        ("sum < 0.25", false),
        ("sum >= 0.99 * none:sum", true),
        ("sum >= none:sum", false),
        ("mean.ep1 >= mean.ep2 > mean.ep3", true),
        ("mean.ep1 >= mean.ep3 > mean.ep2", false),
        ("0.2 <= sum <= 0.3", true),
        ("0.26 <= sum <= 0.3", false),
        ("count = 2467", true),
        ("count = 2466", false),
        ("sum within 0.01 of 0.24", true),
        ("sum within 0.01 of 0.2", false),
        ("mean.ep1 + mean.ep2 within 3% of 0.8 * sum", true),
        ("mean.ep1 + mean.ep2 within 2% of 0.8 * sum", false),
        ("mean.* <= 0.102", true),
        ("mean.* <= 0.1", false),
        ("mean.* >= none:mean.*", false),
        ("mean.* + 0.04 >= none:mean.*", true),
    ];
    for (bound, holds) in cases {
        assert_eq!(check(bound).holds, holds, "{bound}");
    }
}

#[test]
fn what_is_measured_is_what_was_compared() {
    let words = |text: &str| Some(Printed::Words(text.to_owned()));
    assert_eq!(check("0.2 <= sum <= 0.3").measured, Some(Printed::Number(0.25)));
    assert_eq!(check("mean.ep1 >= mean.ep2 > mean.ep3").measured, words("0.102, 0.093, 0.049"));
    assert_eq!(check("sum within 1% of 1 * none:sum").measured, words("0.25 of 0.252"));
}

#[test]
fn the_worst_case_is_named() {
    let found = check("mean.* >= 0.9 * none:mean.*");
    assert_eq!(found.note.as_deref(), Some("worst at ep3"));
    assert_eq!(found.measured, Some(Printed::Words("0.049, 0.072".to_owned())));
}

#[test]
fn no_claim_holds_for_want_of_data() {
    for bound in ["absent <= 1", "absent.* <= 1", "mean.* <= none:absent.*", "other:sum <= 1"] {
        let found = check(bound);
        assert!(!found.holds && found.measured.is_none(), "{bound}");
        assert!(found.note.unwrap().starts_with("not measured"), "{bound}");
    }
}

#[test]
fn mistakes_say_what_was_expected() {
    let cases = [
        ("", "missing at the end"),
        ("sum", "compares with nothing"),
        ("1 <= 2", "compares no figure"),
        ("sum =< 2", "expected one of"),
        ("sum <=", "missing at the end"),
        ("sum within x of 3", "is no distance"),
        ("sum within 1%", "\"of\" is missing"),
        ("sum within 1% of 3 <= 4", "nothing may follow"),
        ("a <= b within 1% of c", "expected one of"),
        ("2 * <= 3", "neither a figure nor a number"),
        ("a.*.* <= 3", "neither a figure nor a number"),
        (":a <= 3", "neither a figure nor a number"),
    ];
    for (bound, why) in cases {
        let error = bound.parse::<Bound>().unwrap_err();
        assert!(error.contains(why), "{bound}: {error}");
    }
}
