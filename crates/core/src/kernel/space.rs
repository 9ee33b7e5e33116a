//! The iteration space of a pass: its axes in the order they are walked, and the blocks they are cut into.

use smallvec::SmallVec;

/// Byte steps of one access along the axes.
pub type Steps = SmallVec<[isize; 6]>;

/// One axis: its size and how much of it one tile takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    pub n: usize,
    pub block: usize,
}

impl Dim {
    pub fn tiles(self) -> usize {
        self.n.div_ceil(self.block)
    }
}

pub type Dims = SmallVec<[Dim; 6]>;

/// A walk over memory by one load or store: where element zero lies and the byte steps along each axis.
#[derive(Clone, Debug)]
pub struct Walk {
    pub start: *mut u8,
    pub steps: Steps,
    pub size: usize,
}

/// Drops axes of one element, orders the others so that the walks' smallest steps come innermost (earlier
/// walks decide first), turns axes that all walk backwards, and merges what all walk as one.
pub fn simplify(shape: &[usize], walks: &mut [Walk]) -> Dims {
    let mut order: SmallVec<[usize; 6]> = (0..shape.len()).filter(|&axis| shape[axis] != 1).collect();
    for i in 1..order.len() {
        let mut j = i;
        while j > 0 && belongs_inside(walks, order[j - 1], order[j]) {
            order.swap(j - 1, j);
            j -= 1;
        }
    }
    for &axis in &order {
        turn(shape[axis], axis, walks);
    }
    merge(shape, &order, walks)
}

/// As [`simplify`], but the axes keep their order and direction.
pub fn in_order(shape: &[usize], walks: &mut [Walk]) -> Dims {
    let order: SmallVec<[usize; 6]> = (0..shape.len()).filter(|&axis| shape[axis] != 1).collect();
    merge(shape, &order, walks)
}

/// The axes in this order, merged where all walk them as one.
fn merge(shape: &[usize], order: &[usize], walks: &mut [Walk]) -> Dims {
    let mut groups: SmallVec<[(usize, usize); 6]> = SmallVec::new(); // (size, the axis whose steps count)
    for &axis in order {
        match groups.last_mut() {
            Some((n, last))
                if walks.iter().all(|w| w.steps[*last] == w.steps[axis] * shape[axis] as isize) =>
            {
                *n *= shape[axis];
                *last = axis;
            }
            _ => groups.push((shape[axis], axis)),
        }
    }
    for walk in walks.iter_mut() {
        walk.steps = groups.iter().map(|&(_, axis)| walk.steps[axis]).collect();
    }
    groups.iter().map(|&(n, _)| Dim { n, block: 1 }).collect()
}

/// Whether axis `outer` has the smaller steps and so should lie inside `inner`.
fn belongs_inside(walks: &[Walk], outer: usize, inner: usize) -> bool {
    for walk in walks {
        let (a, b) = (walk.steps[outer].unsigned_abs(), walk.steps[inner].unsigned_abs());
        if a != 0 && b != 0 && a != b {
            return a < b;
        }
    }
    false
}

fn turn(n: usize, axis: usize, walks: &mut [Walk]) {
    let backwards = walks.iter().all(|w| w.steps[axis] <= 0) && walks.iter().any(|w| w.steps[axis] < 0);
    if backwards {
        for walk in walks {
            // The last element becomes the first.
            walk.start = walk.start.wrapping_offset((n as isize - 1) * walk.steps[axis]);
            walk.steps[axis] = -walk.steps[axis];
        }
    }
}

/// The equal parts, of at most `most`, that an axis of `n` is cut into; whole vectors where it is long.
pub fn even_block(n: usize, most: usize) -> usize {
    let even = n.div_ceil(n.div_ceil(most));
    even.next_multiple_of(if most >= 64 { 32 } else { 1 }).min(most).min(n)
}

/// Blocks of about `tile` elements, the inner axes whole first. Outside an axis that is cut, blocks are 1.
pub fn cut_inner_first(dims: &mut [Dim], tile: usize) {
    let mut room = tile;
    for dim in dims.iter_mut().rev() {
        dim.block = if room <= 1 { 1 } else { even_block(dim.n, room) };
        room = if dim.block == dim.n { room / dim.n.max(1) } else { 1 };
    }
}

/// As [`cut_inner_first`]; but where a walk goes with long steps along the inner axis and with shorter ones
/// along another, blocks are squares over both, so that each cache line fetched is used whole.
pub fn cut(dims: &mut [Dim], walks: &[Walk], tile: usize) {
    let Some(inner) = dims.len().checked_sub(1) else { return };
    let crossing = walks.iter().find_map(|walk| {
        let step = walk.steps[inner].unsigned_abs();
        let shortest =
            (0..inner).filter(|&d| walk.steps[d] != 0).min_by_key(|&d| walk.steps[d].unsigned_abs())?;
        let crosses = step > walk.size && walk.steps[shortest].unsigned_abs() < step;
        crosses.then_some((shortest, walk.size))
    });
    let Some((other, size)) = crossing else { return cut_inner_first(dims, tile) };
    // Whole squares of cache lines on both sides.
    let line = (128 / size).clamp(8, 64);
    dims[inner].block = even_block(dims[inner].n, tile / line);
    dims[other].block = even_block(dims[other].n, tile / dims[inner].block);
}

/// As [`cut`] for a copy of about `tile` elements at once: where the two walks disagree on which axis is the row,
/// blocks are long along both.
pub fn cut_squares(dims: &mut [Dim], walks: &[Walk; 2], tile: usize) {
    let Some(inner) = dims.len().checked_sub(1) else { return };
    let [to, from] = walks;
    let row = (0..inner).find(|&d| from.steps[d] == from.size as isize);
    let (Some(row), true) = (row, to.steps[inner] == to.size as isize) else {
        return cut_inner_first(dims, tile);
    };
    // Powers of two, so that squares of whole cache lines fit; a short axis leaves the other more room.
    let side = 1 << (tile.ilog2() / 2);
    dims[row].block = dims[row].n.min(side.max(tile / dims[inner].n.min(side)));
    dims[inner].block = dims[inner].n.min((tile / dims[row].block).max(1));
}

/// Whether every tile of a walk is one row of memory.
pub fn is_contiguous(dims: &[Dim], walk: &Walk) -> bool {
    let mut expect = walk.size as isize;
    let mut cut = false;
    for (dim, &step) in dims.iter().zip(&walk.steps).rev() {
        if dim.block == 1 {
            continue;
        }
        // A tile at the end of a cut axis is shorter: an axis outside it would not continue the row.
        if cut || step != expect {
            return false;
        }
        cut = dim.block != dim.n;
        expect *= dim.block as isize;
    }
    true
}

/// One tile: where it starts along each axis and how many elements it takes there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tile {
    pub starts: SmallVec<[usize; 6]>,
    pub counts: SmallVec<[usize; 6]>,
}

impl Tile {
    /// Tile number `index` of the row-major grid of tiles.
    pub fn at(dims: &[Dim], mut index: usize) -> Tile {
        let mut tile =
            Tile { starts: SmallVec::from_elem(0, dims.len()), counts: SmallVec::from_elem(0, dims.len()) };
        for d in (0..dims.len()).rev() {
            let tiles = dims[d].tiles();
            tile.place(dims, d, index % tiles);
            index /= tiles;
        }
        tile
    }

    /// Moves to the next tile of the grid (after the last one, to the first).
    pub fn advance(&mut self, dims: &[Dim]) {
        for d in (0..dims.len()).rev() {
            let next = self.starts[d] + dims[d].block;
            if next < dims[d].n {
                self.starts[d] = next;
                self.counts[d] = dims[d].block.min(dims[d].n - next);
                return;
            }
            self.place(dims, d, 0);
        }
    }

    /// Sets axis `d` to its block number `block`.
    pub fn place(&mut self, dims: &[Dim], d: usize, block: usize) {
        let start = block * dims[d].block;
        self.starts[d] = start;
        self.counts[d] = dims[d].block.min(dims[d].n - start);
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.counts.iter().product()
    }
}
