; Memory that programs allocate: blocks of 64 KiB to 128 MiB are kept when they are freed, for the next call.
;
; malloc gives large blocks back to the system, and the next call pays for every page again. Sizes are rounded up to
; four classes an octave. Each class has eight places, taken and filled by single atomic exchanges; a block that finds no
; place is really freed. Blocks are malloc's own, so that free() may have them at any time.

@morello.places = internal global [44 x [8 x ptr]] zeroinitializer, align 64

declare noalias ptr @malloc(i64)
declare void @free(ptr)
declare i64 @malloc_usable_size(ptr)
declare i64 @llvm.ctlz.i64(i64, i1)

define ptr @morello_allocate(i64 %size) {
  %below = sub i64 %size, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %below, i1 false)
  %octave = sub i64 63, %zeros
  %from = sub i64 %octave, 16
  ; One comparison for both ends: what is smaller wraps around.
  %kept = icmp ult i64 %from, 11
  br i1 %kept, label %class, label %plain
plain:
  %other = call ptr @malloc(i64 %size)
  ret ptr %other
class:
  %shift = sub i64 %octave, 2
  %top = lshr i64 %below, %shift
  %quarter = and i64 %top, 3
  %first = shl i64 %from, 2
  %index = or i64 %first, %quarter
  %more = add i64 %top, 1
  %rounded = shl i64 %more, %shift
  br label %look
look:
  %i = phi i64 [ 0, %class ], [ %next, %on ]
  %place = getelementptr [44 x [8 x ptr]], ptr @morello.places, i64 0, i64 %index, i64 %i
  %seen = load atomic ptr, ptr %place monotonic, align 8
  %none = icmp eq ptr %seen, null
  br i1 %none, label %on, label %take
take:
  %taken = atomicrmw xchg ptr %place, ptr null acq_rel, align 8
  %lost = icmp eq ptr %taken, null
  br i1 %lost, label %on, label %have
have:
  ret ptr %taken
on:
  %next = add i64 %i, 1
  %all = icmp eq i64 %next, 8
  br i1 %all, label %new, label %look
new:
  %fresh = call ptr @malloc(i64 %rounded)
  ret ptr %fresh
}

define void @morello_release(ptr %block) {
  %usable = call i64 @malloc_usable_size(ptr %block)
  %zeros = call i64 @llvm.ctlz.i64(i64 %usable, i1 false)
  %octave = sub i64 63, %zeros
  %shift = sub i64 %octave, 2
  %from = sub i64 %octave, 16
  %large = icmp ult i64 %from, 11
  br i1 %large, label %class, label %plain
class:
  ; The largest class that the block serves whole.
  %top = lshr i64 %usable, %shift
  %quarter = and i64 %top, 3
  %first = shl i64 %from, 2
  %above = or i64 %first, %quarter
  %index = sub i64 %above, 1
  %known = icmp ult i64 %index, 44
  br i1 %known, label %look, label %plain
look:
  %i = phi i64 [ 0, %class ], [ %next, %on ]
  %place = getelementptr [44 x [8 x ptr]], ptr @morello.places, i64 0, i64 %index, i64 %i
  %seen = load atomic ptr, ptr %place monotonic, align 8
  %full = icmp ne ptr %seen, null
  br i1 %full, label %on, label %put
put:
  %pair = cmpxchg ptr %place, ptr null, ptr %block acq_rel monotonic, align 8
  %done = extractvalue { ptr, i1 } %pair, 1
  br i1 %done, label %end, label %on
on:
  %next = add i64 %i, 1
  %all = icmp eq i64 %next, 8
  br i1 %all, label %plain, label %look
plain:
  call void @free(ptr %block)
  ret void
end:
  ret void
}
