//! Round trips per minute, as draft-ietf-ippm-responsiveness-09 has it. The way to load the line
//! and to know when it is loaded is the experiment's; here is what the samples amount to. Earlier
//! drafts weighed the parts otherwise and give another number.

use super::spread::{mean, percentile};

/// Round trips of connections made for the purpose, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Foreign<'a> {
    /// Of the TCP handshake.
    pub tcp: &'a [f64],
    /// Of TLS, per round trip; none where there is no TLS.
    pub tls: Option<&'a [f64]>,
    /// From the request to the answer.
    pub http: &'a [f64],
}

/// Round trips per minute: the mean of what new connections see and of what requests see
/// (`loaded`, in milliseconds) on connections that carry the load.
#[must_use]
pub fn responsiveness(foreign: &Foreign, loaded: &[f64]) -> Option<f64> {
    let parts = [Some(foreign.tcp), foreign.tls, Some(foreign.http)];
    let means: Option<Vec<f64>> = parts.into_iter().flatten().map(trimmed_mean).collect();
    let per_minute = |ms: f64| (ms > 0.0).then(|| 60_000.0 / ms);
    let foreign = per_minute(mean(&means?)?)?;
    Some((foreign + per_minute(trimmed_mean(loaded)?)?) / 2.0)
}

/// The mean of the samples that are not above the 95th percentile.
#[must_use]
pub fn trimmed_mean(samples: &[f64]) -> Option<f64> {
    let most = percentile(samples, 95.0)?;
    let kept: Vec<f64> = samples.iter().copied().filter(|x| *x <= most).collect();
    mean(&kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drafts_arithmetic() {
        let fifty = [50.0; 20];
        let foreign = Foreign { tcp: &fifty, tls: Some(&fifty), http: &fifty };
        assert_eq!(responsiveness(&foreign, &fifty), Some(1200.0));
        assert_eq!(responsiveness(&foreign, &[500.0; 20]), Some(660.0));
        let plain = Foreign { tls: None, ..foreign };
        assert_eq!(responsiveness(&plain, &fifty), Some(1200.0));
        assert_eq!(responsiveness(&plain, &[]), None);
    }

    #[test]
    fn the_slowest_of_twenty_does_not_count() {
        let mut samples = [10.0; 20];
        samples[7] = 9_000.0;
        assert_eq!(trimmed_mean(&samples), Some(10.0));
    }
}
