//! The element types of arrays, their facts, and the Rust type behind each one.
//! Knows nothing of arrays or promotion (see `promote`).

use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

/// The type of an array's elements. The order is NumPy's within a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
}

/// What family a dtype belongs to; the order is the order of promotion between families.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Bool,
    Int,
    Float,
    Complex,
}

impl DType {
    pub const ALL: [DType; 15] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ];

    /// The size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// NumPy's name (`ml_dtypes`' for bfloat16).
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::U8 => "uint8",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::C64 => "complex64",
            DType::C128 => "complex128",
        }
    }

    /// The dtype NumPy calls `name`.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }

    pub const fn kind(self) -> Kind {
        match self {
            DType::Bool => Kind::Bool,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Kind::Float,
            DType::C64 | DType::C128 => Kind::Complex,
            _ => Kind::Int,
        }
    }

    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    pub const fn is_complex(self) -> bool {
        matches!(self, DType::C64 | DType::C128)
    }

    /// Floating or complex.
    pub const fn is_inexact(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// Integer, bool not counted.
    pub const fn is_integer(self) -> bool {
        self.is_signed() || self.is_unsigned()
    }

    pub const fn is_signed(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    pub const fn is_unsigned(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// The least and the greatest value of an integer dtype (bool: 0 and 1).
    pub const fn int_range(self) -> Option<(i128, i128)> {
        Some(match self {
            DType::Bool => (0, 1),
            DType::I8 => (i8::MIN as i128, i8::MAX as i128),
            DType::I16 => (i16::MIN as i128, i16::MAX as i128),
            DType::I32 => (i32::MIN as i128, i32::MAX as i128),
            DType::I64 => (i64::MIN as i128, i64::MAX as i128),
            DType::U8 => (0, u8::MAX as i128),
            DType::U16 => (0, u16::MAX as i128),
            DType::U32 => (0, u32::MAX as i128),
            DType::U64 => (0, u64::MAX as i128),
            _ => return None,
        })
    }

    /// The real dtype of a complex one's parts; itself otherwise.
    pub const fn real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A bool as it lies in memory: any byte but 0 counts as true, so foreign bytes are never undefined behaviour.
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    #[inline(always)]
    pub const fn new(b: bool) -> Bool {
        Bool(b as u8)
    }

    #[inline(always)]
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

impl PartialEq for Bool {
    #[inline(always)]
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}

/// A Rust type that elements of some dtype have in memory.
pub trait Element: bytemuck::Pod + Default + PartialEq + std::fmt::Debug + Send + Sync {
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),* $(,)?) => { $(impl Element for $t { const DTYPE: DType = DType::$d; })* };
}
elements!(Bool => Bool, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32,
    u64 => U64, f16 => F16, bf16 => BF16, f32 => F32, f64 => F64, Complex32 => C64, Complex64 => C128);

/// Evaluates `$body` with the type name `$t` bound to the Rust type behind a dtype. The forms `ints`
/// (no bool), `floats`, `inexact` (floats and complex), `reals` (no bool), `ordered`
/// (reals and bool), `bits` (ints and bool), `numbers` (all but bool) and `all` choose which dtypes are expanded; the last arm
/// gives the value for every other dtype.
#[macro_export]
macro_rules! with_type {
    (all $d:expr, $t:ident => $body:expr) => {
        match $d {
            $crate::DType::Bool => { type $t = $crate::Bool; $body }
            $crate::DType::C64 => { type $t = $crate::Complex32; $body }
            $crate::DType::C128 => { type $t = $crate::Complex64; $body }
            other => $crate::with_type!(reals other, $t => $body, else unreachable!("every dtype is listed")),
        }
    };
    (all $d:expr, $t:ident => $body:expr, else $other:expr) => { $crate::with_type!(all $d, $t => $body) };
    (ordered $d:expr, $t:ident => $body:expr, else $other:expr) => {
        match $d {
            $crate::DType::Bool => { type $t = $crate::Bool; $body }
            other => $crate::with_type!(reals other, $t => $body, else $other),
        }
    };
    (bits $d:expr, $t:ident => $body:expr, else $other:expr) => {
        match $d {
            $crate::DType::Bool => { type $t = $crate::Bool; $body }
            other => $crate::with_type!(ints other, $t => $body, else $other),
        }
    };
    (numbers $d:expr, $t:ident => $body:expr, else $other:expr) => {
        match $d {
            $crate::DType::C64 => { type $t = $crate::Complex32; $body }
            $crate::DType::C128 => { type $t = $crate::Complex64; $body }
            other => $crate::with_type!(reals other, $t => $body, else $other),
        }
    };
    (reals $d:expr, $t:ident => $body:expr, else $other:expr) => {
        match $d {
            $crate::DType::F16 => { type $t = $crate::f16; $body }
            $crate::DType::BF16 => { type $t = $crate::bf16; $body }
            $crate::DType::F32 => { type $t = f32; $body }
            $crate::DType::F64 => { type $t = f64; $body }
            other => $crate::with_type!(ints other, $t => $body, else $other),
        }
    };
    (inexact $d:expr, $t:ident => $body:expr, else $other:expr) => {
        match $d {
            $crate::DType::C64 => { type $t = $crate::Complex32; $body }
            $crate::DType::C128 => { type $t = $crate::Complex64; $body }
            other => $crate::with_type!(floats other, $t => $body, else $other),
        }
    };
    (floats $d:expr, $t:ident => $body:expr, else $other:expr) => {
        match $d {
            $crate::DType::F16 => { type $t = $crate::f16; $body }
            $crate::DType::BF16 => { type $t = $crate::bf16; $body }
            $crate::DType::F32 => { type $t = f32; $body }
            $crate::DType::F64 => { type $t = f64; $body }
            _ => $other,
        }
    };
    (ints $d:expr, $t:ident => $body:expr, else $other:expr) => {
        match $d {
            $crate::DType::I8 => { type $t = i8; $body }
            $crate::DType::I16 => { type $t = i16; $body }
            $crate::DType::I32 => { type $t = i32; $body }
            $crate::DType::I64 => { type $t = i64; $body }
            $crate::DType::U8 => { type $t = u8; $body }
            $crate::DType::U16 => { type $t = u16; $body }
            $crate::DType::U32 => { type $t = u32; $body }
            $crate::DType::U64 => { type $t = u64; $body }
            _ => $other,
        }
    };
}
