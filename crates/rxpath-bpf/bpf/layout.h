/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Sizes and offsets that the reader knows as numbers (the specifications of maps in src/). A changed structure fails
 * here, and the reader compares the sizes of each map when it loads an object. Maps are declared with their sizes here.
 */
#ifndef RXPATH_LAYOUT_H
#define RXPATH_LAYOUT_H

#define LAYOUT(type, bytes) _Static_assert(sizeof(type) == (bytes), #type ": its reader in src/ knows another size")
#define LAYOUT_AT(type, field, bytes)                                                                                  \
	_Static_assert(__builtin_offsetof(type, field) == (bytes), #type ": its reader in src/ looks for " #field " elsewhere")

/* A map of a type, with so many entries of a key and a value. */
#define MAP(name, map_type, entries, key_type, value_type)                                                             \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_##map_type);                                                                 \
		__uint(max_entries, entries);                                                                          \
		__type(key, key_type);                                                                                 \
		__type(value, value_type);                                                                             \
	} name SEC(".maps")

#endif
