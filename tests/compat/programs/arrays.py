"""The book's preliminaries: making arrays, operations, broadcasting, indexing, linear algebra, conversion."""

import mxnet as mx
import numpy as onp
from mxnet import np, npx

npx.set_np()
x = np.arange(12)
assert x.dtype == np.float32 and x.size == 12 and x.shape == (12,)
X = x.reshape(3, 4)
assert x.reshape(-1, 4).shape == x.reshape((3, -1)).shape == (3, 4)
assert np.zeros((2, 3, 4)).sum() == 0 and np.ones((2, 3, 4)).sum() == 24
y = np.array([[2, 1, 4, 3], [1, 2, 3, 4], [4, 3, 2, 1]])
assert str(X) == "[[ 0.  1.  2.  3.]\n [ 4.  5.  6.  7.]\n [ 8.  9. 10. 11.]]", str(X)
a, b = np.array([1, 2, 4, 8]), np.array([2, 2, 2, 2])
assert (a + b).tolist() == [3.0, 4.0, 6.0, 10.0] and (a**b).tolist() == [1.0, 4.0, 16.0, 64.0]
assert (a / b).tolist() == [0.5, 1.0, 2.0, 4.0] and (a // 3).tolist() == [0.0, 0.0, 1.0, 2.0]
assert np.concatenate([X, y], axis=0).shape == (6, 4) and np.concatenate([X, y], axis=1).shape == (3, 8)
assert (X == y).sum() == 2 and X.sum() == 66
p, q = np.arange(3).reshape(3, 1), np.arange(2).reshape(1, 2)
assert (p + q).tolist() == [[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]
assert X[-1].tolist() == [8.0, 9.0, 10.0, 11.0] and X[1:3].shape == (2, 4)
X[1, 2] = 9
assert X[1].tolist() == [4.0, 5.0, 9.0, 7.0]
X[0:2, :] = 12
assert X[:2].sum() == 96
before = id(y)
y += X
assert id(y) == before
Z = np.zeros_like(y)
before = id(Z)
Z[:] = X + y
assert id(Z) == before
A = X.asnumpy()
B = np.array(A)
assert type(A) is onp.ndarray and isinstance(B, mx.np.ndarray)
a = np.array([3.5])
assert (a.item(), float(a), int(a)) == (3.5, 3.5, 3)
assert f"{float(a):.2f}" == "3.50" and repr(a) == "array([3.5])"

A = np.arange(20).reshape(5, 4)
assert A.T.shape == (4, 5) and (A.T.T == A).all()
B = A.copy()
assert (A + B == 2 * A).all() and (A * B)[1, 1] == 25
assert A.sum(axis=0).tolist() == [40.0, 45.0, 50.0, 55.0] and A.sum(axis=[0, 1]).item() == 190
assert A.mean() == A.sum() / A.size == 9.5 and A.mean(axis=0).shape == (4,)
assert A.sum(axis=1, keepdims=True).shape == (5, 1) and (A / A.sum(axis=1, keepdims=True)).shape == (5, 4)
assert A.cumsum(axis=0)[-1].tolist() == A.sum(axis=0).tolist()
x, y = np.arange(4), np.ones(4)
assert np.dot(x, y) == 6 and np.sum(x * y) == 6
assert np.dot(A, x).shape == (5,) and np.dot(A, np.ones((4, 3))).shape == (5, 3)
u = np.array([3, -4])
assert np.linalg.norm(u) == 5 and np.abs(u).sum() == 7 and np.linalg.norm(np.ones((4, 9))) == 6
symmetric = np.array([[1, 2, 3], [2, 0, 4], [3, 4, 5]])
assert (symmetric == symmetric.T).all()
assert np.tril(np.ones((3, 3))).sum() == 6 and np.eye(3).sum() == 3
assert np.stack([x, y]).shape == (2, 4) and np.expand_dims(x, 0).shape == (1, 4)
assert [part.shape for part in np.split(np.ones((4, 6)), 3, axis=1)] == [(4, 2)] * 3
assert np.where(x > 1, x, -x).tolist() == [0.0, -1.0, 2.0, 3.0]
assert x.argmax() == 3 and int(x.argmax()) == 3 and [10, 11, 12, 13][int(x.argmax())] == 13
assert np.sort(np.array([3, 1, 2])).tolist() == [1.0, 2.0, 3.0]
xx, yy = np.meshgrid(np.linspace(-2, 2, 5), np.linspace(-1, 1, 3))
assert xx.shape == yy.shape == (3, 5)
draws = np.random.normal(0, 1, size=(1000,))
assert abs(float(draws.mean())) < 0.2 and 0.8 < float(draws.std()) < 1.2
try:
    np.dot(A, np.ones((3, 3)))
except mx.MXNetError:
    pass
else:
    raise AssertionError
