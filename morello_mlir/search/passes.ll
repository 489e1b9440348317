; The two generic kernels of the search (see passes_numpy.py). Costs are float64; indices are int64, masks one byte each.

declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, i32, <8 x i1>, <8 x double>)
declare void @llvm.masked.store.v8f64.p0(<8 x double>, ptr, i32, <8 x i1>)
declare i64 @llvm.smax.i64(i64, i64)

; block = min(block, child at what the move leaves + cost). block: [cells, limits]; child: [cells, deep]; cost and group:
; [cells]; maps: [group, limits], -1 where the move does not fit.
define void @move(ptr noalias %block, ptr noalias %child, ptr noalias %cost, ptr noalias %group, ptr noalias %maps,
                  i64 %cells, i64 %limits, i64 %deep) {
entry:
  br label %cells.head
cells.head:
  %c = phi i64 [ 0, %entry ], [ %c.next, %cells.end ]
  %more = icmp slt i64 %c, %cells
  br i1 %more, label %cell, label %exit
cell:
  %extra.at = getelementptr inbounds double, ptr %cost, i64 %c
  %extra = load double, ptr %extra.at, align 8
  %group.at = getelementptr inbounds i64, ptr %group, i64 %c
  %g = load i64, ptr %group.at, align 8
  %map.place = mul nsw i64 %g, %limits
  %map = getelementptr inbounds i64, ptr %maps, i64 %map.place
  %own.place = mul nsw i64 %c, %limits
  %own = getelementptr inbounds double, ptr %block, i64 %own.place
  %below.place = mul nsw i64 %c, %deep
  %below = getelementptr inbounds double, ptr %child, i64 %below.place
  br label %limits.head
limits.head:
  %x = phi i64 [ 0, %cell ], [ %x.next, %limit ]
  %again = icmp slt i64 %x, %limits
  br i1 %again, label %limit, label %cells.end
limit:
  %index.at = getelementptr inbounds i64, ptr %map, i64 %x
  %index = load i64, ptr %index.at, align 8
  %fits = icmp sge i64 %index, 0
  %safe = call i64 @llvm.smax.i64(i64 %index, i64 0)
  %under.at = getelementptr inbounds double, ptr %below, i64 %safe
  %under = load double, ptr %under.at, align 8
  %sum = fadd double %under, %extra
  %value = select i1 %fits, double %sum, double 0x7FF0000000000000
  %cell.at = getelementptr inbounds double, ptr %own, i64 %x
  %old = load double, ptr %cell.at, align 8
  %less = fcmp olt double %value, %old
  %new = select i1 %less, double %value, double %old
  store double %new, ptr %cell.at, align 8
  %x.next = add nuw nsw i64 %x, 1
  br label %limits.head
cells.end:
  %c.next = add nuw nsw i64 %c, 1
  br label %cells.head
exit:
  ret void
}

; cells = min(cells, body * count + rest), so many as `n`; without a rest where `whole`.
define internal void @relax(ptr %cells, ptr %body, ptr %rest, double %count, i64 %n, i1 %whole) alwaysinline {
entry:
  %one = insertelement <8 x double> poison, double %count, i64 0
  %counts = shufflevector <8 x double> %one, <8 x double> poison, <8 x i32> zeroinitializer
  br label %head
head:
  %x = phi i64 [ 0, %entry ], [ %x.next, %step ]
  %left = sub nsw i64 %n, %x
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %step, label %exit
step:
  %left.one = insertelement <8 x i64> poison, i64 %left, i64 0
  %lefts = shufflevector <8 x i64> %left.one, <8 x i64> poison, <8 x i32> zeroinitializer
  %mask = icmp sgt <8 x i64> %lefts, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %cells.at = getelementptr inbounds double, ptr %cells, i64 %x
  %body.at = getelementptr inbounds double, ptr %body, i64 %x
  %rest.at = getelementptr inbounds double, ptr %rest, i64 %x
  %no.rest = insertelement <8 x i1> poison, i1 %whole, i64 0
  %no.rests = shufflevector <8 x i1> %no.rest, <8 x i1> poison, <8 x i32> zeroinitializer
  %has.rest = xor <8 x i1> %no.rests, splat (i1 true)
  %rest.mask = and <8 x i1> %mask, %has.rest
  %b = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %body.at, i32 8, <8 x i1> %mask, <8 x double> zeroinitializer)
  %r = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %rest.at, i32 8, <8 x i1> %rest.mask, <8 x double> zeroinitializer)
  %old = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %cells.at, i32 8, <8 x i1> %mask, <8 x double> zeroinitializer)
  %bodies = fmul <8 x double> %b, %counts
  %value = fadd <8 x double> %bodies, %r
  %less = fcmp olt <8 x double> %value, %old
  %new = select <8 x i1> %less, <8 x double> %value, <8 x double> %old
  call void @llvm.masked.store.v8f64.p0(<8 x double> %new, ptr %cells.at, i32 8, <8 x i1> %mask)
  %x.next = add nuw nsw i64 %x, 8
  br label %head
exit:
  ret void
}

; The tiles of one axis, numbers from `first` to `last` of its lists, at `n` cells. Sizes of the axis lie `stride` apart.
define internal void @axis(ptr %cells, ptr %base, i64 %stride, i64 %n, i64 %first, i64 %last, ptr %index, ptr %count,
                           ptr %rest) {
entry:
  br label %head
head:
  %t = phi i64 [ %first, %entry ], [ %t.next, %tile ]
  %more = icmp slt i64 %t, %last
  br i1 %more, label %tile, label %exit
tile:
  %index.at = getelementptr inbounds i64, ptr %index, i64 %t
  %i = load i64, ptr %index.at, align 8
  %body.place = mul nsw i64 %i, %stride
  %body = getelementptr inbounds double, ptr %base, i64 %body.place
  %rest.at = getelementptr inbounds i64, ptr %rest, i64 %t
  %r = load i64, ptr %rest.at, align 8
  %whole = icmp slt i64 %r, 0
  %safe = call i64 @llvm.smax.i64(i64 %r, i64 0)
  %left.place = mul nsw i64 %safe, %stride
  %left = getelementptr inbounds double, ptr %base, i64 %left.place
  %count.at = getelementptr inbounds double, ptr %count, i64 %t
  %times = load double, ptr %count.at, align 8
  call void @relax(ptr %cells, ptr %body, ptr %left, double %times, i64 %n, i1 %whole)
  %t.next = add nuw nsw i64 %t, 1
  br label %head
exit:
  ret void
}

; What lists[axis] says of size number `size`: from where to where its tiles are.
define internal { i64, i64 } @span(ptr %start, i64 %size) alwaysinline {
  %first.at = getelementptr inbounds i64, ptr %start, i64 %size
  %first = load i64, ptr %first.at, align 8
  %last.at = getelementptr inbounds i64, ptr %first.at, i64 1
  %last = load i64, ptr %last.at, align 8
  %one = insertvalue { i64, i64 } poison, i64 %first, 0
  %both = insertvalue { i64, i64 } %one, i64 %last, 1
  ret { i64, i64 } %both
}

; The tiles of size number `size` of axis number `axis`.
define internal void @tiles(ptr %cells, ptr %base, i64 %stride, i64 %n, i64 %size, ptr %lists, i64 %axis) {
  %at = shl i64 %axis, 2
  %start.at = getelementptr inbounds ptr, ptr %lists, i64 %at
  %start = load ptr, ptr %start.at, align 8
  %index.at = getelementptr inbounds ptr, ptr %start.at, i64 1
  %index = load ptr, ptr %index.at, align 8
  %count.at = getelementptr inbounds ptr, ptr %start.at, i64 2
  %count = load ptr, ptr %count.at, align 8
  %rest.at = getelementptr inbounds ptr, ptr %start.at, i64 3
  %rest = load ptr, ptr %rest.at, align 8
  %span = call { i64, i64 } @span(ptr %start, i64 %size)
  %first = extractvalue { i64, i64 } %span, 0
  %last = extractvalue { i64, i64 } %span, 1
  call void @axis(ptr %cells, ptr %base, i64 %stride, i64 %n, i64 %first, i64 %last, ptr %index, ptr %count, ptr %rest)
  ret void
}

; One ascending sweep over block [rows, depth, cols, limits]. lists: for each axis in turn pointers to start, index, count
; and rest.
define void @tile(ptr %block, i64 %rows, i64 %depth, i64 %cols, i64 %limits, ptr %lists) {
entry:
  %width = mul nsw i64 %cols, %limits
  br label %rows.head
rows.head:
  %a = phi i64 [ 0, %entry ], [ %a.next, %rows.end ]
  %more.rows = icmp slt i64 %a, %rows
  br i1 %more.rows, label %depth.head, label %exit
depth.head:
  %b = phi i64 [ 0, %rows.head ], [ %b.next, %depth.end ]
  %more.depth = icmp slt i64 %b, %depth
  br i1 %more.depth, label %line, label %rows.end
line:
  %line.first = mul nsw i64 %a, %depth
  %line.number = add nsw i64 %line.first, %b
  %line.place = mul nsw i64 %line.number, %width
  %base = getelementptr inbounds double, ptr %block, i64 %line.place
  ; A whole line at once: what tiles of m and k read is finished.
  %stride.m = mul nsw i64 %depth, %width
  %b.place = mul nsw i64 %b, %width
  %base.m = getelementptr inbounds double, ptr %block, i64 %b.place
  call void @tiles(ptr %base, ptr %base.m, i64 %stride.m, i64 %width, i64 %a, ptr %lists, i64 0)
  %a.place = mul nsw i64 %line.first, %width
  %base.k = getelementptr inbounds double, ptr %block, i64 %a.place
  call void @tiles(ptr %base, ptr %base.k, i64 %width, i64 %width, i64 %b, ptr %lists, i64 1)
  br label %cols.head
cols.head:
  %c = phi i64 [ 0, %line ], [ %c.next, %cell ]
  %more.cols = icmp slt i64 %c, %cols
  br i1 %more.cols, label %cell, label %depth.end
cell:
  ; Along n in ascending order.
  %from = mul nsw i64 %c, %limits
  %cells = getelementptr inbounds double, ptr %base, i64 %from
  call void @tiles(ptr %cells, ptr %base, i64 %limits, i64 %limits, i64 %c, ptr %lists, i64 2)
  %c.next = add nuw nsw i64 %c, 1
  br label %cols.head
depth.end:
  %b.next = add nuw nsw i64 %b, 1
  br label %depth.head
rows.end:
  %a.next = add nuw nsw i64 %a, 1
  br label %rows.head
exit:
  ret void
}
