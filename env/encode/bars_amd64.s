#include "textflag.h"

// Cell h of a column is 1 if full > h, part if full = h, and else 0. Rows are written from the first on; in row h
//
//	over = full > h          (all bits of a lane, or none)
//	cell = max(over & 1, last & part)    where last is over of the row before, all bits in row 0
//
// A column with part = 0 needs no case of its own, nor one with full = 20, whose part has no row.

// func writeAVX2(dst *float32, cols int, full *int32, part *float32, blocks int)
TEXT ·writeAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ cols+8(FP), SI
	MOVQ full+16(FP), R8
	MOVQ part+24(FP), R9
	MOVQ blocks+32(FP), CX
	SHLQ $2, SI

	VPCMPEQD Y15, Y15, Y15 // -1
	VPSRLD   $25, Y15, Y14
	VPSLLD   $23, Y14, Y14 // 1.0

	SUBQ $2, CX
	JLT  one

two: // 16 columns
	VMOVDQU (R8), Y0
	VMOVDQU 32(R8), Y1
	VMOVUPS (R9), Y2
	VMOVUPS 32(R9), Y3
	VMOVAPS Y2, Y4
	VMOVAPS Y3, Y5
	VPXOR   Y6, Y6, Y6 // h
	MOVQ    DI, DX
	MOVQ    $20, BX

rowOfTwo:
	VPCMPGTD Y6, Y0, Y7
	VPCMPGTD Y6, Y1, Y8
	VPSUBD   Y15, Y6, Y6
	VANDPS   Y7, Y14, Y9
	VANDPS   Y8, Y14, Y10
	VMAXPS   Y9, Y4, Y9
	VMAXPS   Y10, Y5, Y10
	VANDPS   Y7, Y2, Y4
	VANDPS   Y8, Y3, Y5
	VMOVUPS  Y9, (DX)
	VMOVUPS  Y10, 32(DX)
	ADDQ     SI, DX
	DECQ     BX
	JNZ      rowOfTwo

	ADDQ $64, R8
	ADDQ $64, R9
	ADDQ $64, DI
	SUBQ $2, CX
	JGE  two

one:
	ADDQ $2, CX
	JZ   done

	// 8 columns
	VMOVDQU (R8), Y0
	VMOVUPS (R9), Y2
	VMOVAPS Y2, Y4
	VPXOR   Y6, Y6, Y6
	MOVQ    $20, BX

rowOfOne:
	VPCMPGTD Y6, Y0, Y7
	VPSUBD   Y15, Y6, Y6
	VANDPS   Y7, Y14, Y9
	VMAXPS   Y9, Y4, Y9
	VANDPS   Y7, Y2, Y4
	VMOVUPS  Y9, (DI)
	ADDQ     SI, DI
	DECQ     BX
	JNZ      rowOfOne

done:
	VZEROUPPER
	RET
