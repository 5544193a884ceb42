package pebble

import "deduplab/stream"

// filter is a Bloom filter in blocks of a cache line: a key sets one bit in each of the eight words of its block. With
// 12 bits a key, about one absent key in 200 passes.
type filter [][8]uint64

const (
	bitsPerKey   = 12
	bitsPerBlock = 512
)

func newFilter(keys int) filter { return make(filter, keys*bitsPerKey/bitsPerBlock+1) }

// filterHash does not share its bits with Key.Hash, by which keys are distributed to subtasks.
func filterHash(key stream.Key) uint64 { return stream.Key{Hi: key.Lo, Lo: key.Hi}.Hash() }

// block is chosen by the upper half of the hash; the bits in it are by six bits each of the lower 48.
func (f filter) block(hash uint64) *[8]uint64 { return &f[hash>>32*uint64(len(f))>>32] }

func (f filter) add(key stream.Key) {
	hash := filterHash(key)
	block := f.block(hash)
	for i := range block {
		block[i] |= 1 << (hash >> (6 * i) & 63)
	}
}

func (f filter) has(hash uint64) bool {
	block := f.block(hash)
	for i := range block {
		if block[i]>>(hash>>(6*i)&63)&1 == 0 {
			return false
		}
	}
	return true
}
