package conformance

import (
	"encoding/binary"
	"math/bits"
)

// Spark spreads rows over the partitions of a shuffle by the Murmur3 hash of the key's columns, in their order: each is
// hashed with what came out for the one before as its seed, the first one with 42, and a null changes nothing.

// partitionOf is the partition of a key: HashPartitioning.partitionIdExpression.
func partitionOf(key []sparkValue, partitions int) int {
	hash := uint32(42)
	for i := range key {
		hash = key[i].murmur3(hash)
	}
	p := int(int32(hash)) % partitions
	if p < 0 {
		p += partitions
	}
	return p
}

// murmur3 is Spark's Murmur3Hash of a value.
func (v *sparkValue) murmur3(seed uint32) uint32 {
	switch {
	case v.null:
		return seed
	case v.typ == "string":
		return murmur3Bytes([]byte(v.text), seed)
	case v.typ == "double":
		return murmur3Long(v.bits(), seed)
	case v.typ == "timestamp":
		return murmur3Long(v.n*1000, seed) // microseconds
	case v.typ == "window":
		return murmur3Long(v.end*1000, murmur3Long(v.n*1000, seed))
	case v.typ == "int" || v.typ == "boolean":
		return murmur3Final(murmur3Mix(seed, uint32(v.n)), 4)
	}
	return murmur3Long(v.n, seed)
}

func murmur3Long(n int64, seed uint32) uint32 {
	return murmur3Final(murmur3Mix(murmur3Mix(seed, uint32(n)), uint32(n>>32)), 8)
}

// murmur3Bytes is Murmur3_x86_32.hashUnsafeBytes, which takes each of the last bytes for a word of its own.
func murmur3Bytes(b []byte, seed uint32) uint32 {
	length, h := len(b), seed
	for ; len(b) >= 4; b = b[4:] {
		h = murmur3Mix(h, binary.LittleEndian.Uint32(b))
	}
	for _, c := range b {
		h = murmur3Mix(h, uint32(int32(int8(c))))
	}
	return murmur3Final(h, length)
}

func murmur3Mix(h, k uint32) uint32 {
	k *= 0xcc9e2d51
	k = bits.RotateLeft32(k, 15)
	k *= 0x1b873593
	return bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
}

func murmur3Final(h uint32, length int) uint32 {
	h ^= uint32(length)
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
