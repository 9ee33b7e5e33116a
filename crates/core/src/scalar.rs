//! A Python scalar on its way into an op: data, not an attribute, and weak in promotion.

use crate::{DType, ErrorKind};

/// The value of a scalar operand. Integers are as wide as any dtype needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Bool(bool),
    Int(i128),
    Float(f64),
    Complex(f64, f64),
}

impl Scalar {
    /// Whether the value fits `dtype` as NumPy 2 asks of Python integers (other kinds always do).
    pub fn fits(self, dtype: DType) -> bool {
        match (self, dtype.int_range()) {
            (Scalar::Int(v), Some((low, high))) => low <= v && v <= high,
            _ => true,
        }
    }

    /// Why the value cannot be stored as `dtype`: an integer out of its range, NaN or an infinity as an integer,
    /// a complex number as a real one. The class and the words are NumPy's.
    pub fn refusal(self, dtype: DType) -> Option<(ErrorKind, String)> {
        let is_integer = dtype.int_range().is_some();
        match self {
            _ if !self.fits(dtype) => Some((
                ErrorKind::Overflow,
                format!("Python integer {} out of bounds for {dtype}", self.as_i128()),
            )),
            Scalar::Float(v) if is_integer && v.is_nan() => {
                Some((ErrorKind::Value, format!("cannot convert float NaN to integer ({dtype})")))
            }
            Scalar::Float(v) if is_integer && v.is_infinite() => {
                Some((ErrorKind::Overflow, format!("cannot convert float infinity to integer ({dtype})")))
            }
            Scalar::Complex(..) if !dtype.is_complex() && dtype != DType::Bool => {
                Some((ErrorKind::Type, format!("a complex number cannot become {dtype}")))
            }
            _ => None,
        }
    }

    /// The value as a double; a complex number's real part.
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(v) => v as f64,
            Scalar::Float(v) | Scalar::Complex(v, _) => v,
        }
    }

    /// The value as an integer, truncated toward zero.
    pub fn as_i128(self) -> i128 {
        match self {
            Scalar::Bool(b) => b as i128,
            Scalar::Int(v) => v,
            Scalar::Float(v) | Scalar::Complex(v, _) => v as i128,
        }
    }

    /// Writes the value as one element of `dtype` into the first bytes of `out`.
    pub fn write(self, dtype: DType, out: &mut [u8; 16]) {
        use crate::{Complex32, Complex64, bf16, f16};
        let (f, i) = (self.as_f64(), self.as_i128());
        let truth = match self {
            Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
            Scalar::Int(v) => v != 0,
            _ => f != 0.0,
        };
        let im = if let Scalar::Complex(_, im) = self { im } else { 0.0 };
        fn put<T: bytemuck::Pod>(out: &mut [u8; 16], v: T) {
            let bytes = bytemuck::bytes_of(&v);
            out[..bytes.len()].copy_from_slice(bytes);
        }
        match dtype {
            DType::Bool => put(out, truth as u8),
            DType::I8 => put(out, i as i8),
            DType::I16 => put(out, i as i16),
            DType::I32 => put(out, i as i32),
            DType::I64 => put(out, i as i64),
            DType::U8 => put(out, i as u8),
            DType::U16 => put(out, i as u16),
            DType::U32 => put(out, i as u32),
            DType::U64 => put(out, i as u64),
            DType::F16 => put(out, f16::from_f64(f)),
            DType::BF16 => put(out, bf16::from_f64(f)),
            DType::F32 => put(out, f as f32),
            DType::F64 => put(out, f),
            DType::C64 => put(out, Complex32::new(f as f32, im as f32)),
            DType::C128 => put(out, Complex64::new(f, im)),
        }
    }

    /// Whether it is not zero; NaN is not.
    pub fn is_true(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(v) => v != 0,
            Scalar::Float(v) => v != 0.0,
            Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
        }
    }

    /// The element of `dtype` at `at`.
    ///
    /// # Safety
    /// An element of this dtype can be read there; it need not be aligned.
    pub unsafe fn read(dtype: DType, at: *const u8) -> Scalar {
        use crate::{Complex32, Complex64, bf16, f16};
        /// # Safety
        /// As [`Scalar::read`].
        unsafe fn get<T: bytemuck::Pod>(at: *const u8) -> T {
            // SAFETY: the caller's contract.
            unsafe { at.cast::<T>().read_unaligned() }
        }
        // SAFETY: the caller's contract, for the dtype's type.
        unsafe {
            match dtype {
                DType::Bool => Scalar::Bool(get::<u8>(at) != 0),
                DType::I8 => Scalar::Int(get::<i8>(at).into()),
                DType::I16 => Scalar::Int(get::<i16>(at).into()),
                DType::I32 => Scalar::Int(get::<i32>(at).into()),
                DType::I64 => Scalar::Int(get::<i64>(at).into()),
                DType::U8 => Scalar::Int(get::<u8>(at).into()),
                DType::U16 => Scalar::Int(get::<u16>(at).into()),
                DType::U32 => Scalar::Int(get::<u32>(at).into()),
                DType::U64 => Scalar::Int(get::<u64>(at).into()),
                DType::F16 => Scalar::Float(get::<f16>(at).to_f64()),
                DType::BF16 => Scalar::Float(get::<bf16>(at).to_f64()),
                DType::F32 => Scalar::Float(get::<f32>(at).into()),
                DType::F64 => Scalar::Float(get(at)),
                DType::C64 => {
                    let z = get::<Complex32>(at);
                    Scalar::Complex(z.re.into(), z.im.into())
                }
                DType::C128 => {
                    let z = get::<Complex64>(at);
                    Scalar::Complex(z.re, z.im)
                }
            }
        }
    }

    /// The bit pattern, for comparing and hashing where NaN must equal itself.
    pub fn bits(self) -> (u8, i128, u64) {
        match self {
            Scalar::Bool(b) => (0, b as i128, 0),
            Scalar::Int(v) => (1, v, 0),
            Scalar::Float(v) => (2, v.to_bits() as i128, 0),
            Scalar::Complex(re, im) => (3, re.to_bits() as i128, im.to_bits()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let values = [Scalar::Bool(true), Scalar::Int(100), Scalar::Float(-2.5), Scalar::Complex(0.5, -4.0)];
        for (&value, dtypes) in values.iter().zip([
            &[DType::Bool][..],
            &[DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64],
            &[DType::F16, DType::BF16, DType::F32, DType::F64],
            &[DType::C64, DType::C128],
        ]) {
            for &dtype in dtypes {
                let mut bytes = [0; 16];
                value.write(dtype, &mut bytes);
                // SAFETY: an element of the dtype was just written there.
                assert_eq!(unsafe { Scalar::read(dtype, bytes.as_ptr()) }, value, "{dtype}");
            }
        }
    }
}
