//! How the space of a reduction is cut: the tree, which the shape and the reduced axes alone decide, and the
//! tiles that are walked, which may differ from pass to pass. Moves no element.
//!
//! The elements of one output come in row-major order of the reduced axes. A block is a run of them: where the
//! reduced axes are innermost, up to `CALLS` leaves of up to `LEAF` elements, otherwise some rows. An accumulator
//! takes a block in order; blocks are combined pairwise.

use crate::kernel::reduce::{SHORT, together};
use crate::kernel::space::even_block;
use smallvec::SmallVec;

/// Elements of a leaf.
const LEAF: usize = 1024;
/// Leaves of a block.
const CALLS: usize = 16;
/// Rows of a block that is folded across: this many elements, within the bounds.
const ACROSS: usize = 8192;
const ROWS: [usize; 2] = [64, 256];
/// Elements of a tile that steps compute and that is folded across (long rows read memory page by page), and of one
/// that only memory is read for.
const WIDE_TILE: usize = 2048;
const DIRECT_TILE: usize = 32 * 1024;
/// The most outputs of such a tile.
const DIRECT_OUTPUTS: usize = 2048;

pub type Sizes = SmallVec<[usize; 6]>;

/// Whether rows are folded along themselves: the innermost axis is reduced, or there is none.
pub fn is_inner(reduced: &[bool]) -> bool {
    reduced.last() != Some(&false)
}

/// The first of the innermost axes of one kind.
pub fn split(reduced: &[bool]) -> usize {
    let inner = is_inner(reduced);
    reduced.iter().rposition(|&r| r != inner).map_or(0, |d| d + 1)
}

/// The blocks of the tree.
pub struct Tree {
    /// For each axis, how much of it one block takes; 1 for kept axes.
    pub blocks: Sizes,
    /// Elements of a leaf; as much of each axis as one takes.
    pub leaf: usize,
    pub leaves: Sizes,
}

pub fn tree(sizes: &[usize], reduced: &[bool]) -> Tree {
    let mut tree =
        Tree { blocks: Sizes::from_elem(1, sizes.len()), leaf: 1, leaves: Sizes::from_elem(1, sizes.len()) };
    let first = split(reduced);
    let mut calls = CALLS;
    if is_inner(reduced) {
        let mut room = LEAF;
        for d in (first..sizes.len()).rev() {
            let n = sizes[d].max(1);
            let part = if room <= 1 { 1 } else { even_block(n, room) };
            room = if part == n { room / n } else { 0 };
            tree.leaves[d] = part;
            tree.leaf *= part;
            tree.blocks[d] = take(n, part, &mut calls);
        }
    } else {
        let width = sizes[first..].iter().product::<usize>().max(1);
        calls = if width < SHORT {
            ROWS[1] * together(width)
        } else {
            (ACROSS / width).next_power_of_two().clamp(ROWS[0], ROWS[1])
        };
    }
    for d in (0..first).rev().filter(|&d| reduced[d]) {
        tree.blocks[d] = take(sizes[d].max(1), 1, &mut calls);
    }
    tree
}

/// How much of an axis of `n`, cut into parts, a block with room for so many parts takes.
fn take(n: usize, part: usize, calls: &mut usize) -> usize {
    let parts = n.div_ceil(part);
    if parts <= *calls {
        // After a shorter leaf the next axis out would not continue the row.
        *calls = if n.is_multiple_of(part) { *calls / parts } else { 1 };
        n
    } else {
        let some = (*calls).max(1);
        *calls = 1;
        part * some
    }
}

/// How much of each axis a tile takes: of kept axes as many outputs as one cell has, of reduced axes at most what
/// a block takes, in whole leaves. `elements`: of a tile that steps compute and that is folded along its rows; None
/// where nothing is computed. `narrow`: a kept axis along which memory is contiguous while rows are not.
pub fn tiles(
    sizes: &[usize],
    reduced: &[bool],
    tree: &Tree,
    elements: Option<usize>,
    narrow: Option<usize>,
) -> Sizes {
    let direct = elements.is_none();
    let inner = is_inner(reduced);
    let mut tile = Sizes::from_elem(1, sizes.len());
    let first = split(reduced);
    let mut room = match elements {
        None => DIRECT_TILE,
        Some(elements) if inner => elements,
        Some(_) => WIDE_TILE,
    };
    if !inner {
        let mut outputs = if direct { DIRECT_OUTPUTS } else { WIDE_TILE };
        for d in (first..sizes.len()).rev() {
            tile[d] = part(sizes[d], &mut outputs);
        }
        room /= tile[first..].iter().product::<usize>().max(1);
    }
    let short = !inner && sizes[first..].iter().product::<usize>() < SHORT;
    if direct || short {
        for d in (0..sizes.len()).filter(|&d| reduced[d]) {
            tile[d] = tree.blocks[d];
            room /= tile[d].max(1);
        }
    } else if inner {
        tile[first..].copy_from_slice(&tree.leaves[first..]);
        room /= tree.leaf;
        for d in (first..sizes.len()).rev().filter(|_| narrow.is_none()) {
            // Leaves that follow each other in the tile as they do in the block.
            let leaves = tree.blocks[d].div_ceil(tree.leaves[d]).max(1);
            let some = room.clamp(1, leaves);
            tile[d] = (some * tree.leaves[d]).min(tree.blocks[d]);
            room = if some == leaves { room / leaves } else { 1 };
        }
    } else {
        for d in (0..first).rev().filter(|&d| reduced[d]) {
            tile[d] = room.clamp(1, tree.blocks[d].max(1));
            room = if tile[d] == sizes[d] { room / sizes[d] } else { 0 };
        }
    }
    if let Some(d) = narrow {
        tile[d] = sizes[d].min(SHORT);
        return tile;
    }
    room = room.min(DIRECT_OUTPUTS);
    for d in (0..first).rev().filter(|&d| !reduced[d]) {
        tile[d] = part(sizes[d], &mut room);
    }
    tile
}

/// Equal parts of an axis within the room, of which they take their share.
fn part(n: usize, room: &mut usize) -> usize {
    let part = if *room <= 1 || n == 0 { 1 } else { even_block(n, *room) };
    *room = if part == n { *room / n.max(1) } else { 0 };
    part
}
