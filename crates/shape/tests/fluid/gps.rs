//! The fluid that the scheduler comes near: every backlogged leaf is served all the time, each node
//! sharing what it has among its children by the law (Parekh and Gallager 1993, in a tree). Time
//! goes from event to event: a frame comes, a leaf runs dry, the line changes.

/// Nothing is left of a queue below so many bits: what floats cannot tell from nothing.
const DRY: f64 = 1e-6;

#[derive(Clone, Debug)]
pub(crate) struct Fluid {
    /// By number; 0 is the link, and a parent comes before its children.
    nodes: Vec<Node>,
    children: Vec<Vec<usize>>,
    line: f64,
    /// Seconds.
    now: f64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) parent: usize,
    pub(crate) weight: f64,
    /// Bits a second.
    pub(crate) guarantee: f64,
    /// Bits that wait in a leaf.
    pub(crate) queue: f64,
    /// Bits that a leaf, or all below a node, has sent.
    pub(crate) served: f64,
}

impl Fluid {
    pub(crate) fn new(nodes: Vec<Node>, line: f64, now: f64) -> Fluid {
        let mut children = vec![Vec::new(); nodes.len()];
        for (number, node) in nodes.iter().enumerate().skip(1) {
            children[node.parent].push(number);
        }
        Fluid { nodes, children, line, now }
    }

    pub(crate) fn comes(&mut self, leaf: usize, bits: f64) {
        self.nodes[leaf].queue += bits;
    }

    /// A node is told something else.
    pub(crate) fn tell(&mut self, number: usize, weight: f64, guarantee: f64) {
        (self.nodes[number].weight, self.nodes[number].guarantee) = (weight, guarantee);
    }

    pub(crate) fn served(&self, number: usize) -> f64 {
        self.nodes[number].served
    }

    /// Serves until then.
    pub(crate) fn goes_on(&mut self, until: f64) {
        while self.now < until {
            let rates = self.rates();
            let dry = |number: usize| self.nodes[number].queue / rates[number];
            let leaves = (1..rates.len()).filter(|&n| self.children[n].is_empty());
            let next = leaves.filter(|&n| rates[n] > 0.0).map(dry).fold(f64::INFINITY, f64::min);
            let span = next.min(until - self.now);
            for (number, rate) in rates.into_iter().enumerate() {
                let node = &mut self.nodes[number];
                node.served += rate * span;
                node.queue -= rate * span;
                if node.queue < DRY {
                    node.queue = 0.0;
                }
            }
            self.now = if next < until - self.now { self.now + span } else { until };
        }
    }

    /// What each node has now.
    fn rates(&self) -> Vec<f64> {
        let mut wants: Vec<bool> = self.nodes.iter().map(|node| node.queue > 0.0).collect();
        for number in (1..self.nodes.len()).rev() {
            if wants[number] {
                wants[self.nodes[number].parent] = true;
            }
        }
        let mut rates = vec![0.0; self.nodes.len()];
        rates[0] = if wants[0] { self.line } else { 0.0 };
        for parent in 0..self.nodes.len() {
            let mut wanting: Vec<usize> =
                self.children[parent].iter().copied().filter(|&n| wants[n]).collect();
            // guarantees that do not fit are scaled alike; a hundredth is left to those without
            let given: f64 = wanting.iter().map(|&n| self.nodes[n].guarantee).sum();
            let has_others = wanting.iter().any(|&n| self.nodes[n].guarantee == 0.0);
            let room = rates[parent] * if has_others { 0.99 } else { 1.0 };
            let scale = if given > room { room / given } else { 1.0 };
            // whose guarantee is most for its weight gets that first, if its weight gives less
            let by_weight = |n: &usize| self.nodes[*n].guarantee / self.nodes[*n].weight;
            wanting.sort_unstable_by(|a, b| by_weight(b).total_cmp(&by_weight(a)));
            let mut left = rates[parent];
            let mut weights: f64 = wanting.iter().map(|&n| self.nodes[n].weight).sum();
            for number in wanting {
                let Node { weight, guarantee, .. } = self.nodes[number];
                rates[number] = (guarantee * scale).max(left * weight / weights).min(left);
                left -= rates[number];
                weights -= weight;
            }
        }
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guarantee_first_and_the_rest_by_weight_until_one_runs_dry() {
        let node = |weight, guarantee| Node { weight, guarantee, ..Node::default() };
        let nodes = vec![Node::default(), node(1.0, 50.0), node(1.0, 0.0), node(3.0, 0.0)];
        let mut fluid = Fluid::new(nodes, 100.0, 0.0);
        fluid.comes(1, 1e9);
        fluid.comes(2, 1e9);
        fluid.comes(3, 75.0);
        // 50, and 12.5 and 37.5 for two seconds; then 50 and 50
        fluid.goes_on(4.0);
        let served = [1, 2, 3].map(|n| fluid.served(n).round());
        assert_eq!(served, [200.0, 125.0, 75.0]);
    }

    #[test]
    fn guarantees_that_do_not_fit_are_scaled_and_leave_a_hundredth() {
        let node = |guarantee| Node { weight: 1.0, guarantee, queue: 1e9, ..Node::default() };
        let nodes = vec![Node::default(), node(150.0), node(48.0), node(0.0)];
        let mut fluid = Fluid::new(nodes, 100.0, 0.0);
        fluid.goes_on(10.0);
        let served = [1, 2, 3].map(|n| fluid.served(n).round());
        assert_eq!(served, [750.0, 240.0, 10.0]);
    }
}
