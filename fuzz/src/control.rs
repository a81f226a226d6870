//! What a stranger at the control socket may send, and what a command may be answered.

use weir_control::{Books, History, Request, Status, Tree, metrics, read};

/// A line is a request or is refused with a cure; a request is read as it is written. As an answer
/// it is one or is not, and what it tells can be shown.
pub fn control(bytes: &[u8]) {
    match Request::read(bytes) {
        Ok(request) => {
            let line = request.line();
            let again = Request::read(line.trim_end().as_bytes());
            assert_eq!(again.as_ref(), Ok(&request), "{line}");
        }
        Err(refused) => assert!(!refused.what.is_empty() && refused.what.len() < 1_000),
    }
    let tree = read::<Tree>(bytes).and_then(Result::ok);
    if let Some(Ok(status)) = read::<Status>(bytes) {
        assert!(metrics::text(&status, tree.as_ref(), metrics::Times::default()).ends_with('\n'));
    }
    if let Some(tree) = tree {
        assert!(tree.shown(false, 3).rows.len() <= 3);
    }
    let _ = (read::<Books>(bytes), read::<History>(bytes));
}
