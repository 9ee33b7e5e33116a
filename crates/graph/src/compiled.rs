//! Compiled graphs: the calls a traced function made, over numbered slots, appended again for other arrays without
//! running it and without `infer`. Knows how a graph is replayed; `trace` makes graphs, `clean` shortens them.

use crate::array::Array;
use crate::backward::Rule;
use crate::call::{Call, In, Out};
use crate::device::Device;
use crate::error::Result;
use crate::fold::Fold;
use crate::inferred::{Form, Inference};
use crate::invoke::append;
use crate::node::{Edge, Kind, Node, Parent, Saved, SavedValues};
use crate::place::{LayoutRef, Place};
use crate::random;
use crate::registry::with_own;
use crate::segment::Segment;
use crate::value::Value;
use mxnp_core::attrs::Attrs;
use mxnp_core::op::{Draw, Op};
use mxnp_core::{DType, Layout, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

/// A place in a slot's value. In an input's slot, offsets count from where that input began when it was traced.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Spot {
    pub slot: u32,
    pub layout: LayoutRef,
    pub dtype: DType,
}

/// An operand.
#[derive(Clone)]
pub(crate) enum Arg {
    Spot(Spot),
    Scalar(Scalar),
}

impl Arg {
    pub fn spot(&self) -> Option<&Spot> {
        match self {
            Arg::Spot(spot) => Some(spot),
            Arg::Scalar(_) => None,
        }
    }
}

/// A result; see [`Out`].
#[derive(Clone)]
pub(crate) struct Target {
    pub at: Spot,
    pub computed: DType,
    pub fresh: bool,
}

pub(crate) struct CallStep {
    pub op: &'static Op,
    pub attrs: Attrs,
    pub ins: SmallVec<[Arg; 2]>,
    pub known: Arc<Inference>,
    pub outs: SmallVec<[Target; 1]>,
}

/// Where an edge of the tape comes from at a replay.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// Output `out` of the node that this graph makes as its `node`th.
    Node {
        node: u32,
        out: u32,
    },
    Outside(u32),
}

/// A value that a gradient rule reads, with its version counted from the one at the step.
#[derive(Clone)]
pub(crate) enum Kept {
    Spot { at: Spot, later: i64 },
    Scalar(Scalar),
}

/// A node that goes on the tape.
pub(crate) struct NodeStep {
    pub number: u32,
    pub kind: Kind,
    pub parents: SmallVec<[(Option<Source>, Form); 3]>,
    pub known: Arc<Inference>,
    pub saved_ins: SmallVec<[Option<Kept>; 3]>,
    pub saved_outs: SmallVec<[Option<Kept>; 2]>,
    /// The gradient rule, compiled by the backwards of the replays.
    pub rule: Arc<Rule>,
}

/// A view, which a replay does not need and a listing does.
pub(crate) struct ViewStep {
    pub op: &'static Op,
    pub attrs: Attrs,
    pub from: Spot,
    pub to: Spot,
}

pub(crate) enum Step {
    Call(CallStep),
    Node(Box<NodeStep>),
    View(ViewStep),
    /// A random call that nobody needs still takes its draw.
    Draw,
    /// The function went one way because this was so.
    Guard {
        at: Spot,
        truth: bool,
    },
}

impl Step {
    /// Every spot it names.
    pub fn spots_mut(&mut self) -> Box<dyn Iterator<Item = &mut Spot> + '_> {
        fn kept(kept: &mut Option<Kept>) -> Option<&mut Spot> {
            match kept {
                Some(Kept::Spot { at, .. }) => Some(at),
                _ => None,
            }
        }
        fn arg(arg: &mut Arg) -> Option<&mut Spot> {
            match arg {
                Arg::Spot(spot) => Some(spot),
                Arg::Scalar(_) => None,
            }
        }
        match self {
            Step::Call(call) => Box::new(
                call.ins.iter_mut().filter_map(arg).chain(call.outs.iter_mut().map(|out| &mut out.at)),
            ),
            Step::Node(node) => {
                Box::new(node.saved_ins.iter_mut().chain(&mut node.saved_outs).filter_map(kept))
            }
            Step::View(view) => Box::new([&mut view.from, &mut view.to].into_iter()),
            Step::Guard { at, .. } => Box::new(std::iter::once(at)),
            Step::Draw => Box::new(std::iter::empty()),
        }
    }

    /// The spots it reads, writes or keeps.
    pub fn spots(&self) -> SmallVec<[&Spot; 6]> {
        fn kept(kept: &Option<Kept>) -> Option<&Spot> {
            match kept {
                Some(Kept::Spot { at, .. }) => Some(at),
                _ => None,
            }
        }
        match self {
            Step::Call(call) => {
                call.ins.iter().filter_map(Arg::spot).chain(call.outs.iter().map(|out| &out.at)).collect()
            }
            Step::Node(node) => node.saved_ins.iter().chain(&node.saved_outs).filter_map(kept).collect(),
            Step::Guard { at, .. } => SmallVec::from_slice(&[at]),
            Step::View(_) | Step::Draw => SmallVec::new(),
        }
    }
}

/// Where a slot's value comes from.
#[derive(Clone)]
pub(crate) enum Origin {
    /// That of an array argument; its offset when traced.
    Input { index: usize, offset: usize },
    /// One from outside: a parameter, an array the function refers to, or a constant.
    Captured(Arc<Value>),
    /// A call's fresh result.
    Made,
}

#[derive(Clone)]
pub(crate) struct Slot {
    pub origin: Origin,
    pub bytes: usize,
    pub device: Device,
    /// Made of nothing but Python's constants.
    pub constant: bool,
}

/// An edge from outside.
pub(crate) enum Outside {
    Input(usize),
    Object(usize),
    Held(Edge),
}

/// An array that was passed in when the graph was traced.
pub(crate) struct Argument {
    pub slot: u32,
    pub layout: LayoutRef,
    pub dtype: DType,
}

/// An array from outside that the caller still holds, such as a parameter: where it is in the caller's list, and
/// whether it had a place on the tape.
#[derive(Clone)]
pub struct Object {
    pub index: usize,
    /// Whether a gradient flows to it; None where it is not on the tape.
    pub traced: Option<bool>,
    pub(crate) at: Spot,
}

pub(crate) struct Output {
    pub at: Spot,
    pub source: Option<Source>,
    /// A constant, given out as a copy: the program may write to it.
    pub copied: bool,
}

/// The calls of a traced function.
pub struct Graph {
    pub(crate) slots: Vec<Slot>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) objects: Vec<Object>,
    pub(crate) steps: Vec<Step>,
    /// After step i, the slots in `releases[i]` are not used any more.
    pub(crate) releases: Vec<SmallVec<[u32; 2]>>,
    pub(crate) outside: Vec<Outside>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) nodes: usize,
    /// Slots from outside that are written.
    pub(crate) written: Vec<u32>,
    /// Captured slots that are no object's, and whether an array of the program on them had a place on the tape.
    pub(crate) strangers: Vec<(u32, bool)>,
    /// What it makes of arrays from outside alone.
    pub(crate) fold: Option<Fold>,
}

/// A replay in progress.
struct Run<'a> {
    graph: &'a Graph,
    values: Vec<Option<Arc<Value>>>,
    /// How far each slot's arrays lie from where they lay when traced.
    shifts: Vec<isize>,
    outside: Vec<Option<Edge>>,
    nodes: Vec<Option<Arc<Node>>>,
    /// What was drawn so far, should a branch go the other way.
    draws: Vec<Draw>,
}

impl Graph {
    /// The arrays of the caller's list that the graph uses; [`Graph::replay`] takes them in this order.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    pub fn num_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// How many calls a replay appends.
    pub fn num_calls(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Call(_))).count()
    }

    /// Whether a replay with these arrays does what the function would. The arguments have the shapes, strides,
    /// dtypes and devices of the traced ones; this looks at what they share, and at the objects' places on the tape.
    pub fn fits(&self, arguments: &[Array], objects: &[Array]) -> bool {
        let same_tape =
            self.objects.iter().zip(objects).all(|(o, array)| o.traced == crate::tape::tracing(array));
        same_tape
            && self.strangers_are_same()
            && self.shares_the_same(arguments)
            && self.is_writable(arguments)
    }

    fn strangers_are_same(&self) -> bool {
        self.strangers.iter().all(|&(slot, had_node)| match &self.slots[slot as usize].origin {
            Origin::Captured(value) => (value.handles().1 > 0) == had_node,
            _ => true,
        })
    }

    fn is_writable(&self, arguments: &[Array]) -> bool {
        self.written.iter().all(|&slot| match self.slots[slot as usize].origin {
            Origin::Input { index, .. } => arguments[index].is_writable(),
            _ => true,
        })
    }

    /// Arguments that shared memory when traced do so in the same way, and nothing else shares what is written.
    fn shares_the_same(&self, arguments: &[Array]) -> bool {
        let apart = |a: &Layout, b: &Layout| a.offset as isize - b.offset as isize;
        for (i, (argument, array)) in self.arguments.iter().zip(arguments).enumerate() {
            let Origin::Input { index, .. } = self.slots[argument.slot as usize].origin else { return false };
            let (first, its) = (&self.arguments[index], &arguments[index]);
            let was = apart(&argument.layout, &first.layout);
            if index != i && !(array.same_value(its) && apart(&array.at.layout, &its.at.layout) == was) {
                return false;
            }
        }
        let is_free = |&slot: &u32| {
            let others = || self.arguments.iter().zip(arguments).filter(|(a, _)| a.slot != slot);
            match &self.slots[slot as usize].origin {
                Origin::Captured(value) => !others().any(|(_, array)| array.at.is(value)),
                Origin::Input { index, .. } => {
                    let value = &arguments[*index].at.value;
                    let captured =
                        |s: &Slot| matches!(&s.origin, Origin::Captured(v) if Arc::ptr_eq(v, value));
                    !others().any(|(_, array)| array.at.is(value)) && !self.slots.iter().any(captured)
                }
                Origin::Made => true,
            }
        };
        self.written.iter().all(is_free)
    }

    /// How the branches went that the function took by the data of arrays, in order.
    pub fn branches(&self) -> impl Iterator<Item = bool> + '_ {
        self.steps.iter().filter_map(|step| match step {
            Step::Guard { truth, .. } => Some(*truth),
            _ => None,
        })
    }

    /// Appends the graph's calls for these arguments and objects, and gives the outputs, pending. None where a branch
    /// goes the other way this time: then all is as before, and `seen` has the branches up to that one. Waits where
    /// there are branches.
    pub fn replay(
        &self,
        arguments: &[Array],
        objects: &[Array],
        seen: &mut Vec<bool>,
    ) -> Result<Option<Vec<Array>>> {
        let mut run = Run::new(self, arguments, objects);
        if let Some(fold) = &self.fold {
            fold.fill(&mut run.values)?;
        }
        let mut branches = 0;
        with_own(|own| {
            for (step, releases) in self.steps.iter().zip(&self.releases) {
                match step {
                    Step::Call(call) => run.call(own, call, releases)?,
                    Step::Node(node) => run.node(node),
                    Step::Draw => drop(run.draw()),
                    Step::Guard { at, truth } => {
                        let found = Array::new(run.place(at)).item(0)?.is_true();
                        branches += 1;
                        if branches > seen.len() {
                            seen.push(found);
                        }
                        if found != *truth {
                            random::give_back(std::mem::take(&mut run.draws));
                            return Ok(None);
                        }
                    }
                    Step::View(_) => {}
                }
                for &slot in releases {
                    run.values[slot as usize] = None;
                }
            }
            let outputs = self.outputs.iter().map(|output| run.output(output)).collect::<Result<Vec<_>>>();
            outputs.map(Some)
        })
    }
}

impl<'a> Run<'a> {
    fn new(graph: &'a Graph, arguments: &[Array], objects: &[Array]) -> Run<'a> {
        let mut shifts = vec![0; graph.slots.len()];
        let mut values = Vec::with_capacity(graph.slots.len());
        for (slot, shift) in graph.slots.iter().zip(&mut shifts) {
            values.push(match &slot.origin {
                Origin::Input { index, offset } => {
                    let at = &arguments[*index].at;
                    *shift = at.layout.offset as isize - *offset as isize;
                    Some(at.value.clone())
                }
                Origin::Captured(value) => Some(value.clone()),
                Origin::Made => None,
            });
        }
        let outside = graph.outside.iter().map(|edge| match edge {
            Outside::Input(i) => arguments[*i].node.clone(),
            Outside::Object(i) => objects[*i].node.clone(),
            Outside::Held(edge) => Some(edge.clone()),
        });
        Run {
            graph,
            values,
            shifts,
            outside: outside.collect(),
            nodes: vec![None; graph.nodes],
            draws: Vec::new(),
        }
    }

    fn place(&self, spot: &Spot) -> Place {
        let layout = match self.shifts[spot.slot as usize] {
            0 => spot.layout.clone(),
            shift => {
                let mut layout = Layout::clone(&spot.layout);
                layout.offset = layout.offset.wrapping_add_signed(shift);
                layout.into()
            }
        };
        let value = self.values[spot.slot as usize].clone();
        Place { value: value.expect("a slot is filled before it is used"), layout, dtype: spot.dtype }
    }

    fn call(&mut self, own: &Segment, step: &CallStep, releases: &[u32]) -> Result<()> {
        let mut outs = SmallVec::new();
        for out in &step.outs {
            if out.fresh {
                let slot = &self.graph.slots[out.at.slot as usize];
                let value = Value::new_pending(slot.bytes, slot.device, own.id);
                self.values[out.at.slot as usize] = Some(value);
            }
            outs.push(Out { at: self.place(&out.at), computed: out.computed, fresh: out.fresh });
        }
        let draw = if step.op.random { self.draw() } else { Draw::default() };
        let input = |arg: &Arg| match arg {
            Arg::Spot(spot) => In::Place(self.place(spot)),
            Arg::Scalar(scalar) => In::Scalar((*scalar).into()),
        };
        let mut ins = SmallVec::new();
        for arg in &step.ins {
            ins.push(input(arg));
        }
        let (attrs, known) = (step.attrs.clone(), step.known.clone());
        let call = Box::new(Call { op: step.op, attrs, ins, known, outs, draw, number: 0 });
        // Given up before the append, which may flush: what nobody needs any more is then not kept.
        for &slot in releases {
            self.values[slot as usize] = None;
        }
        append(own, call)
    }

    fn draw(&mut self) -> Draw {
        let draw = random::next_draw();
        self.draws.push(draw);
        draw
    }

    fn edge(&self, source: Source) -> Option<Edge> {
        match source {
            Source::Node { node, out } => {
                let node = self.nodes[node as usize].clone();
                node.map(|node| Edge { node, out: out as usize })
            }
            Source::Outside(i) => self.outside[i as usize].clone(),
        }
    }

    fn node(&mut self, step: &NodeStep) {
        let parents = step
            .parents
            .iter()
            .map(|(source, form)| Parent { edge: source.and_then(|s| self.edge(s)), form: form.clone() })
            .collect();
        let saved = |kept: &Option<Kept>| {
            kept.as_ref().map(|kept| match kept {
                Kept::Spot { at, later } => {
                    let at = self.place(at);
                    let version = at.value.version().wrapping_add_signed(*later);
                    Saved::Place { at, version }
                }
                Kept::Scalar(scalar) => Saved::Scalar(*scalar),
            })
        };
        let saved = SavedValues {
            ins: step.saved_ins.iter().map(saved).collect(),
            outs: step.saved_outs.iter().map(saved).collect(),
            rule: None,
            compiled: Some(step.rule.clone()),
            parents,
        };
        let node = Node::new(step.kind.clone(), step.known.clone(), saved);
        self.nodes[step.number as usize] = Some(Arc::new(node));
    }

    fn output(&self, output: &Output) -> Result<Array> {
        let array =
            Array { at: self.place(&output.at), node: output.source.and_then(|source| self.edge(source)) };
        if !output.copied {
            return Ok(array);
        }
        use mxnp_core::ops::cast;
        let attrs = cast::astype(array.dtype());
        Ok(crate::invoke(&cast::ASTYPE, attrs, &[(&array).into()])?[0].clone())
    }
}
