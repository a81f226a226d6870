//! What each node gets, exactly: demands go up capped by ceilings, grants come down. A child gets
//! `min(want, max(min(guarantee, want), weight x level))` for the one level at which the sum is
//! what there is. Guarantees that do not fit are scaled alike until they do, beside what children
//! without one want, up to a hundredth of what there is.

use weir_shape::tree::Spec;
use weir_units::Rate;

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
    wants_and_grants(spec, wants, ceilings).1
}

/// By how much, in bits per second, everyone may be off because guarantees are scaled beside
/// somebody without one: those that are above 99 % of what their parent has. Their clocks then take
/// turns at 99 %, and what goes by weight comes a frame in a hundred. A guarantee that is above its
/// part by weight remembers two frames of that and no more, so now and then it has one of these
/// turns. What that takes from those who go by weight, or gives to one guarantee and not another,
/// was 0.36 % of what the parent has at most. Nobody may lack more than a quarter for it.
pub(crate) fn unsteady(spec: &Spec, wants: &[f64], ceilings: &[f64]) -> Vec<f64> {
    let (want, grant) = wants_and_grants(spec, wants, ceilings);
    let mut off = vec![0.0; want.len()];
    for (parent, children) in children(spec).iter().enumerate() {
        let own = if is_scaled(spec, children, grant[parent], &want) { UNSTEADY } else { 0.0 };
        for &child in children {
            // what a branch lacks may be that of one child alone, if the others have ceilings
            off[child] = (off[parent] + own * grant[parent]).min(grant[child] / 4.0);
        }
    }
    off
}

/// The part of what a parent has that may be another's.
const UNSTEADY: f64 = 0.004;

fn wants_and_grants(spec: &Spec, wants: &[f64], ceilings: &[f64]) -> (Vec<f64>, Vec<f64>) {
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
    (want, grant)
}

/// Whether guarantees are scaled for the sake of a child that has none.
fn is_scaled(spec: &Spec, children: &[usize], there: f64, want: &[f64]) -> bool {
    let left = left(spec, children, there, want);
    let guarantee = |number: usize| spec.nodes[number - 1].rate.bps() as f64;
    let floors = children.iter().map(|&child| want[child].min(guarantee(child)));
    left > 0.0 && floors.sum::<f64>() > there - left
}

/// What is left for those that are guaranteed nothing.
fn left(spec: &Spec, children: &[usize], there: f64, want: &[f64]) -> f64 {
    let others = children.iter().filter(|&&child| spec.nodes[child - 1].rate == Rate::ZERO);
    others.map(|&child| want[child]).sum::<f64>().min(there / 100.0)
}

fn share(spec: &Spec, children: &[usize], there: f64, want: &[f64], grant: &mut [f64]) {
    let told = |number: usize| &spec.nodes[number - 1];
    let guarantee = |number: usize| told(number).rate.bps() as f64;
    let left = left(spec, children, there, want);
    let floor = |number: usize, scale: f64| want[number].min(guarantee(number) * scale);
    let scale = level(children, there - left, 1.0, floor);
    let get = |number: usize, level: f64| {
        want[number].min(floor(number, scale).max(told(number).weight as f64 * level))
    };
    // no level is above what there is: a weight is at least 1
    let level = level(children, there, there, get);
    for &child in children {
        grant[child] = get(child, level);
    }
}

/// The level, up to `most`, at which what the children get is what there is.
fn level(children: &[usize], there: f64, most: f64, get: impl Fn(usize, f64) -> f64) -> f64 {
    let sum = |level: f64| children.iter().map(|&child| get(child, level)).sum::<f64>();
    if sum(most) <= there {
        return most;
    }
    let (mut low, mut high) = (0.0, most);
    for _ in 0..100 {
        let level = (low + high) / 2.0;
        if sum(level) > there { high = level } else { low = level }
    }
    high
}
