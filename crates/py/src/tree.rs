//! Arguments and results of traced functions: nested lists, tuples and dicts of arrays and plain values, taken apart
//! into tokens that compare by type and value, and put together again.

use crate::array::NDArray;
use crate::device::Device;
use crate::once::once;
use crate::operand::is_numpy;
use mxnp_graph::Array;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyCFunction, PyComplex, PyDict, PyEllipsis, PyFloat, PyFunction, PyInt, PyList, PyRange,
    PySlice, PyString, PyTuple, PyType,
};
use smallvec::SmallVec;

/// One piece of a nested value, in order.
pub enum Token {
    /// The array object of this number.
    Array(usize),
    None,
    Bool(bool),
    Int(i64),
    /// By its bits: NaN equals itself, and -0.0 is not 0.0.
    Float(u64),
    Text(String),
    /// What never changes, compared by type and `==`.
    Object(Py<PyAny>),
    /// How many tokens trees follow: of a tuple, of a class of its own where it is a named one.
    Tuple(usize, Option<Py<PyType>>),
    List(usize),
    /// The keys, then as many values.
    Dict(Vec<Py<PyAny>>),
}

impl Token {
    pub fn same(&self, other: &Token, py: Python<'_>) -> PyResult<bool> {
        Ok(match (self, other) {
            (Token::Array(a), Token::Array(b)) => a == b,
            (Token::None, Token::None) => true,
            (Token::Bool(a), Token::Bool(b)) => a == b,
            (Token::Int(a), Token::Int(b)) => a == b,
            (Token::Float(a), Token::Float(b)) => a == b,
            (Token::Text(a), Token::Text(b)) => a == b,
            (Token::List(a), Token::List(b)) => a == b,
            (Token::Object(a), Token::Object(b)) => equal(a.bind(py), b.bind(py))?,
            (Token::Tuple(a, x), Token::Tuple(b, y)) => {
                let name = |class: &Option<Py<PyType>>| class.as_ref().map(|class| class.as_ptr());
                a == b && name(x) == name(y)
            }
            (Token::Dict(a), Token::Dict(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b) {
                    if !equal(a.bind(py), b.bind(py))? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => false,
        })
    }

    pub fn copy(&self, py: Python<'_>) -> Token {
        match self {
            Token::Array(a) => Token::Array(*a),
            Token::None => Token::None,
            Token::Bool(a) => Token::Bool(*a),
            Token::Int(a) => Token::Int(*a),
            Token::Float(a) => Token::Float(*a),
            Token::Text(a) => Token::Text(a.clone()),
            Token::List(a) => Token::List(*a),
            Token::Object(a) => Token::Object(a.clone_ref(py)),
            Token::Tuple(n, class) => Token::Tuple(*n, class.as_ref().map(|class| class.clone_ref(py))),
            Token::Dict(keys) => Token::Dict(keys.iter().map(|key| key.clone_ref(py)).collect()),
        }
    }
}

fn equal(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(a.is(b) || (a.get_type().is(b.get_type()) && a.eq(b)?))
}

/// A nested value taken apart.
#[derive(Default)]
pub struct Flat<'py> {
    pub tokens: Vec<Token>,
    /// Each array object once.
    pub arrays: SmallVec<[Bound<'py, NDArray>; 4]>,
}

impl<'py> Flat<'py> {
    /// Takes `obj` apart. False where it holds what may change, or hide arrays.
    pub fn add(&mut self, obj: &Bound<'py, PyAny>) -> PyResult<bool> {
        if let Ok(array) = obj.cast::<NDArray>() {
            let known = self.arrays.iter().position(|seen| seen.is(array));
            let number = known.unwrap_or_else(|| {
                self.arrays.push(array.clone());
                self.arrays.len() - 1
            });
            self.tokens.push(Token::Array(number));
            return Ok(true);
        }
        let token = if obj.is_none() {
            Token::None
        } else if let Ok(value) = obj.cast_exact::<PyBool>() {
            Token::Bool(value.is_true())
        } else if let Ok(value) = obj.cast_exact::<PyInt>() {
            value.extract().map_or_else(|_| Token::Object(obj.clone().unbind()), Token::Int)
        } else if let Ok(value) = obj.cast_exact::<PyFloat>() {
            Token::Float(value.value().to_bits())
        } else if let Ok(value) = obj.cast_exact::<PyString>() {
            Token::Text(value.to_string())
        } else if let Ok(items) = obj.cast::<PyTuple>() {
            let class = items.get_type();
            let is_plain = class.is(obj.py().get_type::<PyTuple>());
            if !is_plain && !obj.hasattr("_make")? {
                return Ok(false);
            }
            self.tokens.push(Token::Tuple(items.len(), (!is_plain).then(|| class.unbind())));
            return self.add_all(items.iter());
        } else if let Ok(items) = obj.cast_exact::<PyList>() {
            self.tokens.push(Token::List(items.len()));
            return self.add_all(items.iter());
        } else if let Ok(items) = obj.cast_exact::<PyDict>() {
            return self.add_dict(items);
        } else if is_fixed(obj)? {
            Token::Object(obj.clone().unbind())
        } else {
            return Ok(false);
        };
        self.tokens.push(token);
        Ok(true)
    }

    fn add_all(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<bool> {
        for item in items {
            if !self.add(&item)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A dict: its keys as they come, and its values.
    pub fn add_dict(&mut self, items: &Bound<'py, PyDict>) -> PyResult<bool> {
        let mut keys = Vec::with_capacity(items.len());
        for (key, _) in items {
            if !(key.is_instance_of::<PyString>() || is_fixed(&key)?) {
                return Ok(false);
            }
            keys.push(key.unbind());
        }
        self.tokens.push(Token::Dict(keys));
        self.add_all(items.values().iter())
    }

    pub fn values(&self, py: Python<'_>) -> SmallVec<[Array; 4]> {
        self.arrays.iter().map(|array| array.get().array(py)).collect()
    }
}

static ENUM: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Whether a value is one that nobody can change.
fn is_fixed(obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = obj.py();
    if obj.is_instance_of::<PyString>()
        || obj.is_instance_of::<PyBytes>()
        || obj.is_instance_of::<PyComplex>()
        || obj.is_instance_of::<PyInt>()
        || obj.is_instance_of::<PyFloat>()
        || obj.is_instance_of::<PyType>()
        || obj.is_instance_of::<PyFunction>()
        || obj.is_instance_of::<PyCFunction>()
        || obj.is_instance_of::<PySlice>()
        || obj.is_instance_of::<PyRange>()
        || obj.is_instance_of::<PyEllipsis>()
        || obj.is_instance_of::<Device>()
    {
        return Ok(true);
    }
    if is_numpy(obj)? {
        return Ok(obj.hasattr("__index__")? && !obj.hasattr("__setitem__")?);
    }
    let kind = once(py, &ENUM, || py.import("enum")?.getattr("Enum").map(Bound::unbind))?;
    Ok(obj.is_instance(kind.bind(py))? || obj.hasattr("newbyteorder")?)
}

/// Puts tokens together again; `array` gives the array objects.
pub struct Builder<'a, 'py> {
    pub py: Python<'py>,
    pub tokens: std::slice::Iter<'a, Token>,
    pub arrays: &'a [Py<NDArray>],
}

impl<'py> Builder<'_, 'py> {
    pub fn build(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let Some(token) = self.tokens.next() else { return Ok(py.None().into_bound(py)) };
        Ok(match token {
            Token::Array(i) => self.arrays[*i].bind(py).clone().into_any(),
            Token::None => py.None().into_bound(py),
            Token::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
            Token::Int(value) => value.into_pyobject(py)?.into_any(),
            Token::Float(bits) => PyFloat::new(py, f64::from_bits(*bits)).into_any(),
            Token::Text(text) => PyString::new(py, text).into_any(),
            Token::Object(obj) => obj.bind(py).clone(),
            Token::List(n) => PyList::new(py, self.several(*n)?)?.into_any(),
            Token::Tuple(n, class) => {
                let plain = PyTuple::new(py, self.several(*n)?)?;
                match class {
                    Some(class) => class.bind(py).call_method1("_make", (plain,))?,
                    None => plain.into_any(),
                }
            }
            Token::Dict(keys) => {
                let made = PyDict::new(py);
                for (key, value) in keys.iter().zip(self.several(keys.len())?) {
                    made.set_item(key, value)?;
                }
                made.into_any()
            }
        })
    }

    fn several(&mut self, n: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
        (0..n).map(|_| self.build()).collect()
    }
}
