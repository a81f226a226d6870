//! How a call sounds: the E-model of ITU-T G.107 (narrow band) in full, with all that it computes
//! on the way. Speech itself is never heard here, so PSQM and its successors cannot be computed;
//! only their order can be compared.

/// A codec as G.113 (appendix I) rates it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codec {
    /// What it is called.
    pub name: &'static str,
    /// Impairment by coding alone (Ie).
    pub ie: f64,
    /// How well it bears loss (Bpl).
    pub bpl: f64,
}

/// The codecs that are known.
pub const CODECS: [Codec; 6] = [
    Codec { name: "G.711", ie: 0.0, bpl: 4.3 },
    Codec { name: "G.711+PLC", ie: 0.0, bpl: 25.1 },
    Codec { name: "G.729", ie: 10.0, bpl: 19.0 },
    Codec { name: "G.729A+VAD", ie: 11.0, bpl: 19.0 },
    Codec { name: "G.723.1+VAD", ie: 15.0, bpl: 16.1 },
    Codec { name: "GSM-EFR", ie: 5.0, bpl: 10.0 },
];

/// The codec of that name.
#[must_use]
pub fn codec(name: &str) -> Option<Codec> {
    CODECS.into_iter().find(|codec| codec.name == name)
}

/// What the E-model is told of a connection. The names are those of G.107, the default is its
/// default.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is named in the table of G.107")]
pub struct EModel {
    pub slr: f64,
    pub rlr: f64,
    pub stmr: f64,
    pub ds: f64,
    pub dr: f64,
    pub telr: f64,
    pub wepl: f64,
    pub qdu: f64,
    pub nc: f64,
    pub nfor: f64,
    pub ps: f64,
    pub pr: f64,
    /// Mean one-way delay of the echo path in milliseconds.
    pub t: f64,
    /// Round trip in the four-wire loop in milliseconds.
    pub tr: f64,
    /// Absolute one-way delay in milliseconds.
    pub ta: f64,
    /// What delay is not noticed, in milliseconds, and how sensitive the user is beyond.
    pub mt: f64,
    pub st: f64,
    pub ie: f64,
    pub bpl: f64,
    /// Loss in per cent.
    pub ppl: f64,
    pub burst_r: f64,
    /// What the user forgives for the advantage of access.
    pub a: f64,
}

impl Default for EModel {
    fn default() -> EModel {
        EModel {
            slr: 8.0,
            rlr: 2.0,
            stmr: 15.0,
            ds: 3.0,
            dr: 3.0,
            telr: 65.0,
            wepl: 110.0,
            qdu: 1.0,
            nc: -70.0,
            nfor: -64.0,
            ps: 35.0,
            pr: 35.0,
            t: 0.0,
            tr: 0.0,
            ta: 0.0,
            mt: 100.0,
            st: 1.0,
            ie: 0.0,
            bpl: 4.3,
            ppl: 0.0,
            burst_r: 1.0,
            a: 0.0,
        }
    }
}

/// What the E-model computes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is named by a formula of G.107")]
pub struct Rating {
    pub no: f64,
    pub nos: f64,
    pub nor: f64,
    pub nfo: f64,
    pub ro: f64,
    pub iolr: f64,
    pub ist: f64,
    pub iq: f64,
    pub is: f64,
    pub idte: f64,
    pub idle: f64,
    pub idd: f64,
    pub id: f64,
    pub ie_eff: f64,
    /// The rating factor.
    pub r: f64,
}

impl EModel {
    /// A call with a codec over a network: one-way delay from mouth to ear in milliseconds
    /// (packetisation, look-ahead and play-out buffer included), loss in per cent.
    #[must_use]
    pub fn call(codec: Codec, delay_ms: f64, loss_percent: f64) -> EModel {
        let Codec { ie, bpl, .. } = codec;
        let ways = EModel { t: delay_ms, ta: delay_ms, tr: 2.0 * delay_ms, ..EModel::default() };
        EModel { ie, bpl, ppl: loss_percent, ..ways }
    }

    /// Everything from noise to the rating.
    #[must_use]
    pub fn rate(&self) -> Rating {
        let (no, nos, nor, nfo) = self.noise();
        let ro = 15.0 - 1.5 * (self.slr + no);
        let (iolr, ist, iq) = (self.loudness(no), self.sidetone(), self.quantizing(ro));
        let is = iolr + ist + iq;
        let (idte, idle, idd) = (self.talker_echo(no, ist), self.listener_echo(ro), self.delay());
        let id = idte + idle + idd;
        let ie_eff = self.equipment();
        let r = ro - is - id - ie_eff + self.a;
        Rating { no, nos, nor, nfo, ro, iolr, ist, iq, is, idte, idle, idd, id, ie_eff, r }
    }

    fn noise(&self) -> (f64, f64, f64, f64) {
        let olr = self.slr + self.rlr;
        let nos =
            self.ps - self.slr - self.ds - 100.0 + 0.004 * (self.ps - olr - self.ds - 14.0).powi(2);
        let lstr = self.stmr + self.dr;
        let pre = self.pr + 10.0 * (1.0 + db((10.0 - lstr) / 10.0)).log10();
        let nor = self.rlr - 121.0 + pre + 0.008 * (pre - 35.0).powi(2);
        let nfo = self.nfor + self.rlr;
        let sum: f64 = [self.nc, nos, nor, nfo].into_iter().map(|noise| db(noise / 10.0)).sum();
        (10.0 * sum.log10(), nos, nor, nfo)
    }

    fn loudness(&self, no: f64) -> f64 {
        let x = (self.slr + self.rlr + 0.2 * (64.0 + no - self.rlr)) / 8.0;
        20.0 * ((1.0 + x.powi(8)).powf(1.0 / 8.0) - x)
    }

    fn sidetone(&self) -> f64 {
        let echo = (-self.t / 4.0).exp() * db(-self.telr / 10.0);
        let s = -10.0 * (db(-self.stmr / 10.0) + echo).log10();
        let bend = |x: f64, power: i32| (1.0 + x.powi(power)).powf(1.0 / f64::from(power));
        12.0 * bend((s - 13.0) / 6.0, 8)
            - 28.0 * bend((s + 1.0) / 19.4, 35)
            - 13.0 * bend((s - 3.0) / 33.0, 13)
            + 29.0
    }

    fn quantizing(&self, ro: f64) -> f64 {
        let q = 37.0 - 15.0 * self.qdu.log10();
        let g = 1.07 + 0.258 * q + 0.0602 * q * q;
        let y = (ro - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
        let z = 46.0 / 30.0 - g / 40.0;
        15.0 * (1.0 + db(y) + db(z)).log10()
    }

    fn talker_echo(&self, no: f64, ist: f64) -> f64 {
        let t = self.t;
        let mut terv = self.telr - 40.0 * ((1.0 + t / 10.0) / (1.0 + t / 150.0)).log10()
            + 6.0 * (-0.3 * t * t).exp();
        if self.stmr < 9.0 {
            terv += ist / 2.0;
        }
        let apart = -1.5 * (no - self.rlr) - (80.0 + 2.5 * (terv - 14.0));
        let echo = apart / 2.0 + (apart * apart / 4.0 + 100.0).sqrt() - 1.0;
        let idte = echo * (1.0 - (-t).exp());
        if self.stmr > 20.0 { idte.hypot(ist) } else { idte }
    }

    fn listener_echo(&self, ro: f64) -> f64 {
        let apart = ro - 10.5 * (self.wepl + 7.0) * (self.tr + 1.0).powf(-0.25);
        apart / 2.0 + (apart * apart / 4.0 + 169.0).sqrt()
    }

    fn delay(&self) -> f64 {
        if self.ta <= self.mt {
            return 0.0;
        }
        let x = (self.ta / self.mt).log2();
        let power = 6.0 * self.st;
        let bend = |x: f64| (1.0 + x.powf(power)).powf(1.0 / power);
        25.0 * (bend(x) - 3.0 * bend(x / 3.0) + 2.0)
    }

    fn equipment(&self) -> f64 {
        if self.ppl <= 0.0 {
            return self.ie;
        }
        self.ie + (95.0 - self.ie) * self.ppl / (self.ppl / self.burst_r + self.bpl)
    }
}

/// Ten to a power.
fn db(power: f64) -> f64 {
    10_f64.powf(power)
}

/// The mean opinion, from 1 to 4.5, that a rating stands for.
#[must_use]
pub fn mos(r: f64) -> f64 {
    match r {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        r => 1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6,
    }
}

/// Of a hundred listeners, how many call a rating poor or worse (G.107, annex B).
pub(crate) fn poor_or_worse(r: f64) -> f64 {
    100.0 * normal((45.0 - r) / 16.0)
}

/// The part of a normal distribution that lies below `x`, to 1e-7 (Abramowitz and Stegun, 26.2.17).
fn normal(x: f64) -> f64 {
    const TERMS: [f64; 5] =
        [0.319_381_53, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let sum = TERMS.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    let above = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum;
    if x < 0.0 { above } else { 1.0 - above }
}

#[cfg(test)]
#[path = "voice_tests.rs"]
mod tests;
