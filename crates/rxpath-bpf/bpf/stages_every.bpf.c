// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The latency of stages where every packet is looked at: of a socket so many are followed one by one, and its storage is
 * larger by as much.
 */
#define FOLLOWED 2000
#include "stages.bpf.c"
