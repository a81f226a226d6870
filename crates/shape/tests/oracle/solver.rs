//! What each node gets, exactly: demands go up capped by ceilings, grants come down. A child gets
//! `min(want, max(min(guarantee, want), weight x level))` for the one level at which the sum is
//! what there is.

use weir_shape::tree::Spec;

/// The numbers of each node's children.
pub(crate) fn children(spec: &Spec) -> Vec<Vec<usize>> {
    let most = spec.nodes.iter().map(|n| n.number).max().unwrap_or(0) as usize;
    let mut children = vec![Vec::new(); most + 1];
    for node in &spec.nodes {
        children[node.parent as usize].push(node.number as usize);
    }
    children
}

/// Bits per second by number. `wants` says what the leaves want, `ceilings` what the nodes may
/// have; nodes are numbered in their order, from 1.
pub(crate) fn solve(spec: &Spec, wants: &[f64], ceilings: &[f64]) -> Vec<f64> {
    let children = children(spec);
    let mut want = wants.to_vec();
    for node in spec.nodes.iter().rev() {
        let number = node.number as usize;
        if !node.is_leaf {
            want[number] = children[number].iter().map(|&child| want[child]).sum();
        }
        want[number] = want[number].min(ceilings[number - 1]);
    }
    let mut grant = vec![0.0; want.len()];
    grant[0] = spec.rate.bps() as f64;
    for (parent, children) in children.iter().enumerate() {
        share(spec, children, grant[parent], &want, &mut grant);
    }
    grant[0] = children[0].iter().map(|&child| grant[child]).sum();
    grant
}

fn share(spec: &Spec, children: &[usize], there: f64, want: &[f64], grant: &mut [f64]) {
    let floor = |number: usize| want[number].min(spec.nodes[number - 1].rate.bps() as f64);
    let floors: f64 = children.iter().map(|&child| floor(child)).sum();
    let scale = if floors > there { there / floors } else { 1.0 };
    let get = |number: usize, level: f64| {
        let by_weight = spec.nodes[number - 1].weight as f64 * level;
        want[number].min(by_weight.max(floor(number) * scale))
    };
    // no level is above what there is: a weight is at least 1
    let (mut low, mut high) = (0.0, there);
    for _ in 0..100 {
        let level = (low + high) / 2.0;
        let sum: f64 = children.iter().map(|&child| get(child, level)).sum();
        if sum > there { high = level } else { low = level }
    }
    for &child in children {
        grant[child] = get(child, high);
    }
}
