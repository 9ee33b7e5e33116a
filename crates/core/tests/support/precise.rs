//! Numbers of two doubles, about 31 digits, and the elementary functions on them: what the kernels are held to.
//! Slow and plain: series and Newton's method.

/// An unevaluated sum, the second part at most half a unit of the first.
#[derive(Clone, Copy, Debug)]
pub struct Precise(pub f64, pub f64);

use Precise as P;

const LN_2: P = P(std::f64::consts::LN_2, 2.3190468138462996e-17);
const HALF_PI: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];
const SQRT_PI: P = P(1.772453850905516, -7.666586499825799e-17);

fn sum(a: f64, b: f64) -> P {
    let s = a + b;
    let t = s - a;
    P(s, (a - (s - t)) + (b - t))
}

fn product(a: f64, b: f64) -> P {
    P(a * b, a.mul_add(b, -(a * b)))
}

pub fn p(x: f64) -> P {
    P(x, 0.0)
}

impl std::ops::Neg for P {
    type Output = P;
    fn neg(self) -> P {
        P(-self.0, -self.1)
    }
}
impl std::ops::Add for P {
    type Output = P;
    fn add(self, b: P) -> P {
        let (s, t) = (sum(self.0, b.0), sum(self.1, b.1));
        let s = sum(s.0, s.1 + t.0);
        sum(s.0, s.1 + t.1)
    }
}
impl std::ops::Sub for P {
    type Output = P;
    fn sub(self, b: P) -> P {
        self + -b
    }
}
impl std::ops::Mul for P {
    type Output = P;
    fn mul(self, b: P) -> P {
        let m = product(self.0, b.0);
        sum(m.0, m.1 + (self.0 * b.1 + self.1 * b.0))
    }
}
impl std::ops::Div for P {
    type Output = P;
    fn div(self, b: P) -> P {
        let q = self.0 / b.0;
        let left = self - b * p(q);
        let r = left.0 / b.0;
        let left = left - b * p(r);
        p(q) + p(r) + p(left.0 / b.0)
    }
}

impl P {
    pub fn sqrt(self) -> P {
        if self.0 == 0.0 {
            return self;
        }
        let y = self.0.sqrt();
        p(y) + (self - product(y, y)) / p(2.0 * y)
    }
    fn scale(self, n: i32) -> P {
        let (a, b) = (2f64.powi(n / 2), 2f64.powi(n - n / 2));
        P(self.0 * a * b, self.1 * a * b)
    }
    pub fn abs(self) -> P {
        if self.0 < 0.0 { -self } else { self }
    }

    /// The sum of `term(k)` until it no longer counts, each given the one before.
    fn series(first: P, next: impl Fn(P, f64) -> P) -> P {
        let (mut total, mut term, mut k) = (first, first, 1.0);
        while term.0.abs() > total.0.abs() * 1e-34 && k < 2000.0 {
            term = next(term, k);
            total = total + term;
            k += 1.0;
        }
        total
    }

    pub fn expm1(self) -> P {
        if self.0.abs() < 0.4 {
            return P::series(self, |t, k| t * self / p(k + 1.0));
        }
        self.exp() - p(1.0)
    }
    pub fn exp(self) -> P {
        if self.0 < -800.0 {
            return p(0.0);
        }
        if self.0 > 720.0 {
            return p(f64::INFINITY);
        }
        let n = (self.0 / LN_2.0).round();
        let r = self - LN_2 * p(n);
        (P::series(r, |t, k| t * r / p(k + 1.0)) + p(1.0)).scale(n as i32)
    }
    /// ln(1 + self).
    pub fn log1p(self) -> P {
        if self.0.abs() < 0.3 {
            let s = self / (self + p(2.0));
            let z = s * s;
            let mut power = s;
            let (mut total, mut k) = (s, 3.0);
            while power.0.abs() > total.0.abs() * 1e-34 && k < 200.0 {
                power = power * z;
                total = total + power / p(k);
                k += 2.0;
            }
            return total + total;
        }
        (self + p(1.0)).ln()
    }
    pub fn ln(self) -> P {
        if (self.0 - 1.0).abs() < 0.2 {
            return (self - p(1.0)).log1p();
        }
        let lift = if self.0 < 1e-290 { 100 } else { 0 };
        let x = self.scale(lift);
        let y = p(x.0.ln());
        let y = y + (x * (-y).exp() - p(1.0)).log1p();
        y - LN_2 * p(lift as f64)
    }
    pub fn log2(self) -> P {
        self.ln() / LN_2
    }
    pub fn log10(self) -> P {
        self.ln() / p(10.0).ln()
    }
    pub fn exp2(self) -> P {
        (self * LN_2).exp()
    }
    pub fn sinh(self) -> P {
        if self.0 < 0.0 {
            return -(-self).sinh();
        }
        if self.0 > 100.0 {
            return (self - LN_2).exp();
        }
        let e = self.expm1();
        (e + e / (e + p(1.0))) * p(0.5)
    }
    pub fn cosh(self) -> P {
        let x = self.abs();
        (x - LN_2).exp() + (-x - LN_2).exp()
    }
    pub fn tanh(self) -> P {
        if self.0.abs() > 100.0 {
            return p(self.0.signum());
        }
        let e = (self + self).expm1();
        e / (e + p(2.0))
    }
    pub fn sigmoid(self) -> P {
        if self.0 < 0.0 {
            let e = self.exp();
            return e / (e + p(1.0));
        }
        p(1.0) / ((-self).exp() + p(1.0))
    }
    pub fn softplus(self) -> P {
        (if self.0 > 0.0 { self } else { p(0.0) }) + (-self.abs()).exp().log1p()
    }

    /// (sin, cos)
    fn circle(self) -> (P, P) {
        let n = (self.0 / HALF_PI[0]).round();
        let r = self - product(n, HALF_PI[0]) - product(n, HALF_PI[1]) - product(n, HALF_PI[2]);
        let z = r * r;
        let sin = P::series(r, |t, k| -(t * z) / p(2.0 * k * (2.0 * k + 1.0)));
        let cos = P::series(p(1.0), |t, k| -(t * z) / p((2.0 * k - 1.0) * 2.0 * k));
        match n.rem_euclid(4.0) as i32 {
            0 => (sin, cos),
            1 => (cos, -sin),
            2 => (-sin, -cos),
            _ => (-cos, sin),
        }
    }
    pub fn sin(self) -> P {
        self.circle().0
    }
    pub fn cos(self) -> P {
        self.circle().1
    }
    pub fn tan(self) -> P {
        let (s, c) = self.circle();
        s / c
    }
    pub fn arctan(self) -> P {
        if self.0.abs() < 1e-10 {
            return self - self * self * self / p(3.0);
        }
        let y = p(self.0.atan());
        let t = y.tan();
        y + (self - t) / (self * t + p(1.0))
    }
    fn half_pi() -> P {
        P(HALF_PI[0], HALF_PI[1])
    }
    pub fn arcsin(self) -> P {
        let root = ((p(1.0) - self) * (p(1.0) + self)).sqrt();
        if root.0 == 0.0 { P::half_pi() * p(self.0) } else { (self / root).arctan() }
    }
    pub fn arccos(self) -> P {
        let half = ((p(1.0) - self) / (p(1.0) + self)).sqrt();
        let y = if self.0 <= -1.0 { P::half_pi() } else { half.arctan() };
        y + y
    }
    pub fn arcsinh(self) -> P {
        let x = self.abs();
        let y = (x + x * x / ((x * x + p(1.0)).sqrt() + p(1.0))).log1p();
        if self.0 < 0.0 { -y } else { y }
    }
    pub fn arccosh(self) -> P {
        let t = self - p(1.0);
        (t + (t * (self + p(1.0))).sqrt()).log1p()
    }
    pub fn arctanh(self) -> P {
        let x = self.abs();
        let y = ((x + x) / (p(1.0) - x)).log1p() * p(0.5);
        if self.0 < 0.0 { -y } else { y }
    }
    pub fn cbrt(self) -> P {
        let y = p(self.0.cbrt());
        if self.0 == 0.0 { self } else { y - (y * y * y - self) / (y * y * p(3.0)) }
    }
    pub fn power(self, b: P) -> P {
        (b * self.ln()).exp()
    }

    /// 1 - erf, for any argument.
    pub fn erfc(self) -> P {
        if self.0 < 2.0 {
            return p(1.0) - self.erf();
        }
        // The continued fraction from behind.
        let mut tail = self;
        for k in (1..=400).rev() {
            tail = self + p(k as f64 * 0.5) / tail;
        }
        (-(self * self)).exp() / (SQRT_PI * tail)
    }
    pub fn erf(self) -> P {
        if self.0 < 0.0 {
            return -(-self).erf();
        }
        if self.0 >= 2.0 {
            return if self.0 > 7.0 { p(1.0) } else { p(1.0) - self.erfc() };
        }
        let z = self * self;
        let series = P::series(self, |t, k| t * (z + z) / p(2.0 * k + 1.0));
        series * (-z).exp() * p(2.0) / SQRT_PI
    }
    /// Newton's method from a guess of S. Winitzki's ("A handy approximation for the error function and its inverse").
    pub fn erfinv(self) -> P {
        if self.0.abs() >= 1.0 || self.0 == 0.0 {
            return if self.0.abs() == 1.0 {
                p(f64::INFINITY.copysign(self.0))
            } else {
                p(self.0 / (1.0 - self.0.abs()).max(0.0))
            };
        }
        let a = self.0.abs();
        let log = ((1.0 - a) * (1.0 + a)).ln();
        let part = 2.0 / (std::f64::consts::PI * 0.147) + log / 2.0;
        let mut y = p(((part * part - log / 0.147).sqrt() - part).sqrt());
        let beyond = p(1.0) - self.abs();
        for _ in 0..8 {
            // Near 1 by the complement, which keeps its digits.
            let off = if a < 0.5 { y.erf() - self.abs() } else { beyond - y.erfc() };
            let density = (-(y * y)).exp() * p(2.0) / SQRT_PI;
            let step = off / density;
            y = y - step / (p(1.0) + y * step);
        }
        if self.0 < 0.0 { -y } else { y }
    }
    pub fn gelu(self) -> P {
        self * (-self / p(2.0).sqrt()).erfc() * p(0.5)
    }
    pub fn silu(self) -> P {
        self * self.sigmoid()
    }
    pub fn rsqrt(self) -> P {
        p(1.0) / self.sqrt()
    }
}
