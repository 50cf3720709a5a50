"""Tabu search for the lowest state of one problem on one CPU thread, by exact energies and a budget of flips."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.machine.memory import require
from spinsim.model.graph import adjacency
from spinsim.model.ising import Ising
from spinsim.sampling import one_flip
from spinsim.sampling.one_flip import BEST, BLOCK, BEST_STEP, ENERGY, NUMBERS, PENDING, RING, STEP, UNSAVED

Spins = npt.NDArray[np.int8]
import os
POOL: Final = int(os.environ.get("POOL", 8))
FAIL=int(os.environ.get("FAIL", 16))
PAT=int(os.environ.get("PAT", 100))
MODE=os.environ.get("MODE","both")
CHILD=os.environ.get("CHILD","px")

class _Way(NamedTuple):
    pairs: bool
    tenure: int
    spread: int


class Tabu:
    def __init__(self, model: Ising, seed: int, start: npt.ArrayLike | None = None) -> None:
        n = model.sites
        self.model, self.seed = model, seed
        J, h = model.integer_couplings(0), model.integer_fields(0)
        self.unit = max(1, int(np.gcd.reduce(np.concatenate([J, h]))))
        J, h = J // self.unit, h // self.unit
        self.J, self.h = J, h
        small = 2 * model.largest_local_field // self.unit < 2**28
        dt = np.int32 if small else np.int64
        self.most = np.array([np.iinfo(dt).max], dt)
        near = adjacency(model.graph)
        order = np.lexsort((near.neighbour, np.repeat(np.arange(n), np.diff(near.start))))
        self.start, self.near = near.start, near.neighbour[order]
        self.weight = (2 * J[near.bond[order]]).astype(dt)
        dense = 2 * model.bonds > float(os.environ.get("DENSE",0.15)) * n * n
        self.matrix = np.zeros((0, 0), dt)
        e = model.graph.edges
        if dense:
            M = np.zeros((n, n), dt)
            np.add.at(M, (e[:, 0], e[:, 1]), (2*J).astype(dt)); np.add.at(M, (e[:, 1], e[:, 0]), (2*J).astype(dt))
            self.matrix = M
        nb = -(-n // BLOCK)
        self.wide = bool(dense or 2 * model.bonds / n * float(os.environ.get("WIDE",1)) > nb)
        self.cost = np.empty(nb * BLOCK, dt); self.side = np.zeros(nb * BLOCK, np.int8); self.low = np.empty((2, nb), dt)
        self.first = np.full(RING, -1, np.int64); self.after = np.zeros(n, np.int64)
        self.at = np.zeros(NUMBERS, np.int64)
        self.spin = np.empty(n, np.int8); self.best = np.empty(n, np.int8)
        self.random = np.array([rng.derived_seed(seed, 1) | 1], np.uint64)
        self.ways = ([_Way(False, max(3,int(n*f/2)), max(8,int(n * f))) for f in (0.01, 0.03, 0.06, 0.1, 0.17)] if MODE!='pairs' else []) + ([_Way(True, 7, s) for s in (10, 30, 60)] if MODE!='plain' else [])
        self.sums = np.zeros(len(self.ways)); self.tries = np.zeros(len(self.ways))
        self.patience = min(max(PAT * n, 2000), 10**6)
        self.symmetric = not h.any()
        self.pool=[]; self.energies=[]; self.fails=0
        self.starts=1; self.hits=0; self.best_units=2**62; self.start_best=2**62; self.best_state=None
        self.searching=False
        self.log=[]

    def energy(self, s):
        s = s.astype(np.int64); e=self.model.graph.edges
        return -int(self.J @ (s[e[:, 0]] * s[e[:, 1]]) + self.h @ s)

    def choose_way(self):
        untried=np.flatnonzero(self.tries<2)
        if len(untried): w=int(untried[np.argmin(self.tries[untried])])
        elif self.rand()%4==0: w=self.rand()%len(self.ways)
        else: w=int(np.argmin(self.sums/self.tries))
        return w
    def rand(self):
        return int(one_draw(self.random))

    def new_start(self):
        g=np.random.Generator(np.random.PCG64(self.rand()))
        self.gen=g
        n=self.model.sites
        if CHILD=="none" or len(self.pool)<POOL:
            return np.where(g.random(n)<0.5,1,-1).astype(np.int8), 'random'
        a,b=g.choice(len(self.pool),2,replace=False)
        A,B=self.pool[a],self.pool[b]
        if self.symmetric and int(A.astype(np.int64)@B)<0: B=-B
        d=np.flatnonzero(A!=B)
        if CHILD=="px":
            child=np.empty(n,np.int8)
            sets,taken=one_flip.recombine(A,B,self.start,self.near,self.weight,self.h,child,np.empty(n,np.int64),np.empty(n,np.int64),np.empty(0),self.random)
            if 0<taken<sets: return child,'px'
        child=A.copy()
        pick=d[g.random(len(d))<0.5]
        child[pick]=B[pick]
        return child,'uniform'

    def begin(self):
        spin,kind=self.new_start(); self.kind=kind
        self.way=self.choose_way()
        w=self.ways[self.way]
        self.spin[:]=spin
        self.first[:]=-1
        one_flip.prepare(self.spin,self.start,self.near,self.weight,self.matrix,self.h,self.cost,self.side,self.low,self.most,w.pairs)
        self.at[:]=0; self.at[PENDING]=-1; self.at[UNSAVED]=1
        self.e0=self.energy(self.spin)
        self.searching=True

    def end(self):
        if self.at[UNSAVED]: self.best[:]=self.spin
        e=self.e0+2*int(self.at[BEST])
        if self.kind=='random':
            self.sums[self.way]+=e; self.tries[self.way]+=1
        self.log.append((self.kind,self.way,e,int(self.at[STEP])))
        if e<self.best_units: self.best_units=e; self.best_state=self.best.copy(); self.hits=1; self.start_best=e
        elif e==self.best_units and self.start_best>e: self.hits+=1
        self.start_best=min(self.start_best,e)
        self.searching=False
        new=self.best.copy()
        same=any(np.array_equal(new,p) or (self.symmetric and np.array_equal(new,-p)) for p in self.pool)
        if len(self.pool)<POOL:
            if not same: self.pool.append(new); self.energies.append(e)
        else:
            worst=int(np.argmax(self.energies)); lo=min(self.energies)
            if not same and e<=self.energies[worst]:
                self.pool[worst]=new; self.energies[worst]=e
            self.fails=0 if e<lo else self.fails+1
            if self.fails>=FAIL:
                self.pool=[];self.energies=[];self.fails=0;self.starts+=1;self.start_best=2**62

    def advance(self, steps):
        while steps>0:
            if not self.searching: self.begin()
            w=self.ways[self.way]
            steps=one_flip.search(steps,self.patience,self.spin,self.best,self.start,self.near,self.weight,self.matrix,self.cost,self.side,self.low,self.first,self.after,self.at,self.random,self.most,w.pairs,self.wide,w.tenure,w.spread)
            if self.at[STEP]-self.at[BEST_STEP]>=self.patience: self.end()
    @property
    def best_energy(self):
        e=self.best_units
        if self.searching: e=min(e,self.e0+2*int(self.at[BEST]))
        return e*self.unit*self.model.quantum

from spinsim.machine.compiled import kernel
@kernel
def one_draw(random):
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return np.int64((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(33))
