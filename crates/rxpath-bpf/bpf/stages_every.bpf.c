// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The latency of stages where every packet is traced: more packets of a socket are followed one by one, and its storage
 * is larger accordingly.
 */
#define FOLLOWED 2000
#include "stages.bpf.c"
