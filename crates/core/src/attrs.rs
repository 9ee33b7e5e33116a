//! Attributes of an op: one plain struct per op, comparable and hashable, read from Python keywords or from
//! the strings of MXNet's files, and written back as such strings. Data never is an attribute.

use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::{DType, layout::IndexItem};
use smallvec::SmallVec;
use std::any::Any;
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A keyword's value on its way into an attribute struct.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Ints(Vec<i64>),
    DType(DType),
    Index(Vec<IndexItem>),
}

impl fmt::Display for AttrValue {
    /// The value as Python writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttrValue::None => f.write_str("None"),
            AttrValue::Bool(b) => f.write_str(if *b { "True" } else { "False" }),
            AttrValue::Int(i) => write!(f, "{i}"),
            AttrValue::Float(v) => write!(f, "{v:?}"),
            AttrValue::Str(s) => write!(f, "'{s}'"),
            AttrValue::Ints(v) if v.len() == 1 => write!(f, "({},)", v[0]),
            AttrValue::Ints(v) => {
                write!(f, "({})", v.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
            }
            AttrValue::DType(d) => write!(f, "{d}"),
            AttrValue::Index(_) => f.write_str("an index"),
        }
    }
}

/// What every attribute struct can do; `attrs!` implements it.
pub trait AttrSet: Any + Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn same(&self, other: &dyn AttrSet) -> bool;
    fn feed(&self, state: &mut dyn Hasher);
    /// The fields in MXNet's string form, in order of declaration.
    fn strings(&self) -> Vec<(&'static str, String)>;
}

/// The attributes of one call; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Attrs(Option<Arc<dyn AttrSet>>);

impl Attrs {
    pub const NONE: Attrs = Attrs(None);

    pub fn new<T: AttrSet>(set: T) -> Attrs {
        Attrs(Some(Arc::new(set)))
    }

    /// The op's own struct.
    ///
    /// # Panics
    /// If the call was made with another op's attributes: a defect of mxnp, never of its user.
    pub fn get<T: AttrSet>(&self) -> &T {
        match self.0.as_deref().and_then(|set| set.as_any().downcast_ref::<T>()) {
            Some(set) => set,
            None => {
                panic!("attributes of another op: {:?} where {} was due", self.0, std::any::type_name::<T>())
            }
        }
    }

    pub fn strings(&self) -> Vec<(&'static str, String)> {
        self.0.as_ref().map_or_else(Vec::new, |set| set.strings())
    }
}

impl PartialEq for Attrs {
    #[inline]
    fn eq(&self, other: &Attrs) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a.same(&**b),
            _ => false,
        }
    }
}

impl Eq for Attrs {}

impl Hash for Attrs {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if let Some(set) = &self.0 {
            set.feed(state);
        }
    }
}

/// A type an attribute field may have.
pub trait AttrField: Sized + Clone + PartialEq + Debug + Send + Sync {
    /// Reads the field, or says in words what was expected.
    fn read(value: &AttrValue) -> std::result::Result<Self, &'static str>;
    fn write(&self) -> String;
    fn feed(&self, state: &mut dyn Hasher);
}

impl AttrField for bool {
    fn read(value: &AttrValue) -> std::result::Result<Self, &'static str> {
        match value {
            AttrValue::Bool(b) => Ok(*b),
            AttrValue::Int(i @ (0 | 1)) => Ok(*i == 1),
            AttrValue::Str(s) => match s.as_str() {
                "True" | "true" | "1" => Ok(true),
                "False" | "false" | "0" => Ok(false),
                _ => Err("a bool"),
            },
            _ => Err("a bool"),
        }
    }
    fn write(&self) -> String {
        if *self { "1" } else { "0" }.into()
    }
    fn feed(&self, state: &mut dyn Hasher) {
        state.write_u8(*self as u8);
    }
}

impl AttrField for i64 {
    fn read(value: &AttrValue) -> std::result::Result<Self, &'static str> {
        match value {
            AttrValue::Int(i) => Ok(*i),
            AttrValue::Bool(b) => Ok(*b as i64),
            AttrValue::Str(s) => s.trim().parse().map_err(|_| "an integer"),
            _ => Err("an integer"),
        }
    }
    fn write(&self) -> String {
        self.to_string()
    }
    fn feed(&self, state: &mut dyn Hasher) {
        state.write_i64(*self);
    }
}

impl AttrField for f64 {
    fn read(value: &AttrValue) -> std::result::Result<Self, &'static str> {
        match value {
            AttrValue::Float(f) => Ok(*f),
            AttrValue::Int(i) => Ok(*i as f64),
            AttrValue::Bool(b) => Ok(*b as u8 as f64),
            AttrValue::Str(s) => s.trim().parse().map_err(|_| "a number"),
            _ => Err("a number"),
        }
    }
    fn write(&self) -> String {
        self.to_string()
    }
    fn feed(&self, state: &mut dyn Hasher) {
        state.write_u64(self.to_bits());
    }
}

impl AttrField for String {
    fn read(value: &AttrValue) -> std::result::Result<Self, &'static str> {
        match value {
            AttrValue::Str(s) => Ok(s.clone()),
            _ => Err("a string"),
        }
    }
    fn write(&self) -> String {
        self.clone()
    }
    fn feed(&self, state: &mut dyn Hasher) {
        state.write(self.as_bytes());
        state.write_u8(0xff);
    }
}

impl AttrField for DType {
    fn read(value: &AttrValue) -> std::result::Result<Self, &'static str> {
        match value {
            AttrValue::DType(d) => Ok(*d),
            AttrValue::Str(s) => DType::from_name(s).ok_or("a dtype"),
            _ => Err("a dtype"),
        }
    }
    fn write(&self) -> String {
        self.name().into()
    }
    fn feed(&self, state: &mut dyn Hasher) {
        state.write_u8(*self as u8);
    }
}

impl<T: AttrField> AttrField for Option<T> {
    fn read(value: &AttrValue) -> std::result::Result<Self, &'static str> {
        match value {
            AttrValue::None => Ok(None),
            AttrValue::Str(s) if s == "None" => Ok(None),
            other => T::read(other).map(Some),
        }
    }
    fn write(&self) -> String {
        self.as_ref().map_or_else(|| "None".into(), T::write)
    }
    fn feed(&self, state: &mut dyn Hasher) {
        state.write_u8(self.is_some() as u8);
        if let Some(value) = self {
            value.feed(state);
        }
    }
}

/// A list of integers: axes, kernel sizes, repeats. One integer reads as a list of one.
pub type Ints = SmallVec<[i64; 4]>;

impl AttrField for Ints {
    fn read(value: &AttrValue) -> std::result::Result<Self, &'static str> {
        match value {
            AttrValue::Int(i) => Ok(Ints::from_slice(&[*i])),
            AttrValue::Ints(v) => Ok(Ints::from_slice(v)),
            AttrValue::Str(s) => {
                let inner = s.trim().trim_start_matches(['(', '[']).trim_end_matches([')', ']']);
                inner.split(',').map(str::trim).filter(|p| !p.is_empty()).map(parse_int).collect()
            }
            _ => Err("an integer or a tuple of integers"),
        }
    }
    fn write(&self) -> String {
        let items: Vec<String> = self.iter().map(i64::to_string).collect();
        format!("[{}]", items.join(","))
    }
    fn feed(&self, state: &mut dyn Hasher) {
        state.write_usize(self.len());
        for i in self {
            state.write_i64(*i);
        }
    }
}

/// MXNet 1.x wrote integers of Python 2 as `3L`.
fn parse_int(text: &str) -> std::result::Result<i64, &'static str> {
    text.trim_end_matches('L').parse().map_err(|_| "a tuple of integers")
}

impl AttrField for Shape {
    fn read(value: &AttrValue) -> std::result::Result<Self, &'static str> {
        let ints = Ints::read(value).map_err(|_| "a shape")?;
        ints.iter().map(|&i| usize::try_from(i).map_err(|_| "a shape without negative sizes")).collect()
    }
    fn write(&self) -> String {
        self.iter().map(|&n| n as i64).collect::<Ints>().write()
    }
    fn feed(&self, state: &mut dyn Hasher) {
        state.write_usize(self.len());
        for n in self {
            state.write_usize(*n);
        }
    }
}

/// A basic index that was checked against its array's shape.
pub type Index = SmallVec<[IndexItem; 4]>;

impl AttrField for Index {
    fn read(value: &AttrValue) -> std::result::Result<Self, &'static str> {
        match value {
            AttrValue::Index(items) => Ok(Index::from_slice(items)),
            _ => Err("a basic index"),
        }
    }
    fn write(&self) -> String {
        let item = |i: &IndexItem| match *i {
            IndexItem::At(at) => at.to_string(),
            IndexItem::NewAxis => "None".to_string(),
            IndexItem::Slice { start, step, len } => format!("{start}:{step}:{len}"),
        };
        format!("[{}]", self.iter().map(item).collect::<Vec<_>>().join(","))
    }
    fn feed(&self, mut state: &mut dyn Hasher) {
        self.as_slice().hash(&mut state);
    }
}

/// The keywords of one call; each field is taken once and what is left over is an error.
pub struct Bag {
    op: &'static str,
    items: Vec<(String, AttrValue)>,
}

impl Bag {
    pub fn new(op: &'static str, items: Vec<(String, AttrValue)>) -> Bag {
        Bag { op, items }
    }

    /// Takes the field `name`; `default` stands where the keyword is absent (None: it is required).
    pub fn take<T: AttrField>(&mut self, name: &'static str, default: Option<T>) -> Result<T> {
        match self.items.iter().position(|(key, _)| key == name) {
            Some(at) => {
                let value = self.items.swap_remove(at).1;
                T::read(&value).map_err(|want| {
                    Error::type_(self.op, format!("argument '{name}' must be {want}, got {value}"))
                })
            }
            None => {
                default.ok_or_else(|| Error::type_(self.op, format!("missing required argument '{name}'")))
            }
        }
    }

    /// Refuses keywords that no field took.
    pub fn finish(self) -> Result<()> {
        match self.items.first() {
            Some((key, _)) => Err(Error::type_(self.op, format!("unexpected keyword argument '{key}'"))),
            None => Ok(()),
        }
    }
}

/// How an op reads its attributes.
pub type ReadAttrs = fn(&'static str, Vec<(String, AttrValue)>) -> Result<Attrs>;

/// `ReadAttrs` of an op without attributes.
pub fn no_attrs(op: &'static str, items: Vec<(String, AttrValue)>) -> Result<Attrs> {
    Bag::new(op, items).finish().map(|()| Attrs::NONE)
}

/// Declares an attribute struct: `attrs! { pub struct Sum { axis: Option<Ints> = None, keepdims: bool = false } }`.
/// A field without `= default` is required. Gives the struct `read` (a [`ReadAttrs`]).
#[macro_export]
macro_rules! attrs {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$fmeta:meta])* $field:ident : $ty:ty $(= $default:expr)?),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $($(#[$fmeta])* pub $field: $ty),* }

        impl $name {
            pub fn read(
                op: &'static str,
                items: Vec<(String, $crate::attrs::AttrValue)>,
            ) -> $crate::error::Result<$crate::attrs::Attrs> {
                let mut bag = $crate::attrs::Bag::new(op, items);
                let set = $name { $($field: bag.take(stringify!($field), $crate::attrs!(@default $($default)?))?),* };
                bag.finish()?;
                Ok($crate::attrs::Attrs::new(set))
            }
        }

        impl $crate::attrs::AttrSet for $name {
            fn as_any(&self) -> &dyn std::any::Any { self }
            fn same(&self, other: &dyn $crate::attrs::AttrSet) -> bool {
                other.as_any().downcast_ref::<$name>() == Some(self)
            }
            fn feed(&self, state: &mut dyn std::hash::Hasher) {
                $($crate::attrs::AttrField::feed(&self.$field, state);)*
            }
            fn strings(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($field), $crate::attrs::AttrField::write(&self.$field))),*]
            }
        }
    };
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
}
