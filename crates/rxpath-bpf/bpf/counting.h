/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From when a program counts. Attaching takes a while and interrupts the other CPUs itself. A program that counted
 * before the last one is in place would count that, and entries whose exits are not traced yet.
 */
#ifndef RXPATH_COUNTING_H
#define RXPATH_COUNTING_H

/* The only variable of an object that is 0 at first; the reader sets it once all is attached. */
volatile __u32 counting;

#endif
