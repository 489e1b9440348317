; The thread pool: `morello_parallel(fn, ctx, count)` calls fn(ctx, t) for every t in [0, count) and returns when all
; calls have. Calls are dealt out to threads in advance; but a helper that has not begun when the caller is through with
; its own (it sleeps, or another process has its core) does not hold it up: whoever claims them first makes them.
;
; Who finds the pool in use (another Python thread, or a parallel loop inside of one) makes all its calls itself: there
; is nothing to wait for, so nothing that can lock up.
;
; Helpers spin for a moment after a job, then sleep on a futex. All state is in `morello_pool`, memory that the kernel
; clears in a forked child: there it says that no helper exists, and the next call makes new ones.
;
;     offset    0  lock     i32  1 while a job is run
;              64  pending  i32  helpers that are still at work (futex)
;              68  waiting  i32  1: the caller sleeps until pending is 0
;             128  fn       ptr
;             136  ctx      ptr
;             144  count    i64
;             152  team     i64  helpers of this job, and the caller
;             160  mxcsr    i32  the caller's rounding and denormal modes
;             192  helpers  i64  how many exist
;             200  failed   i64  1: the system gives no more threads
;   256 + 128 * i  posted   i32  number of the last job for helper i (futex)
;            + 4   parked   i32  1: helper i sleeps, or is about to
;           + 64   claimed  i32  number of the last job for helper i whose calls it makes, or the caller in its place

%slot = type { i32, i32, [56 x i8], i32, [60 x i8] }
%pool = type { i32, [60 x i8], i32, i32, [56 x i8], ptr, ptr, i64, i64, i32, [28 x i8], i64, i64, [48 x i8],
               [252 x %slot] }

@morello_pool = external global %pool, align 64

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i64 @syscall(i64, ...)
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse2.pause()
declare i64 @llvm.readcyclecounter()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @morello_parallel(ptr %fn, ptr %ctx, i64 %count) {
  %several = icmp sgt i64 %count, 1
  br i1 %several, label %try, label %alone
try:
  %lock = cmpxchg ptr @morello_pool, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %lock, 1
  br i1 %mine, label %gather, label %alone
gather:
  %others = sub i64 %count, 1
  %few = icmp ult i64 %others, 252
  %want = select i1 %few, i64 %others, i64 252
  %have = call i64 @gather(i64 %want)
  %enough = icmp ult i64 %want, %have
  %helpers = select i1 %enough, i64 %want, i64 %have
  %any = icmp sgt i64 %helpers, 0
  br i1 %any, label %publish, label %release
release:
  store atomic i32 0, ptr @morello_pool release, align 64
  br label %alone

publish:
  %team = add i64 %helpers, 1
  store ptr %fn, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 5)
  store ptr %ctx, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 6)
  store i64 %count, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 7)
  store i64 %team, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 8)
  call void @llvm.x86.sse.stmxcsr(ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 9))
  %pending = trunc i64 %helpers to i32
  store atomic i32 %pending, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 2) release, align 4
  br label %post
post:
  %i = phi i64 [ 0, %publish ], [ %next, %posted ]
  %box = getelementptr %pool, ptr @morello_pool, i64 0, i32 14, i64 %i
  %last = load i32, ptr %box
  %number = add i32 %last, 1
  store atomic i32 %number, ptr %box seq_cst, align 4
  %sleep = getelementptr %slot, ptr %box, i64 0, i32 1
  %parked = load atomic i32, ptr %sleep seq_cst, align 4
  %asleep = icmp ne i32 %parked, 0
  br i1 %asleep, label %wake, label %posted
wake:
  call i64 (i64, ...) @syscall(i64 202, ptr %box, i32 129, i32 1)
  br label %posted
posted:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %helpers
  br i1 %more, label %post, label %own

own:
  call void @share(ptr %fn, ptr %ctx, i64 0, i64 %count, i64 %team)
  %through = call i64 @llvm.readcyclecounter()
  br label %hope
hope:
  %now_left = load atomic i32, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 2) acquire, align 4
  %all_done = icmp eq i32 %now_left, 0
  br i1 %all_done, label %done, label %hold
hold:
  call void @llvm.x86.sse2.pause()
  %moment = call i64 @llvm.readcyclecounter()
  %held = sub i64 %moment, %through
  %soon = icmp ult i64 %held, 1000
  br i1 %soon, label %hope, label %look
look:
  %j = phi i64 [ 0, %hold ], [ %further, %looked ]
  %place = getelementptr %pool, ptr @morello_pool, i64 0, i32 14, i64 %j
  %turn = load i32, ptr %place
  %claim = getelementptr %slot, ptr %place, i64 0, i32 3
  %owned = load atomic i32, ptr %claim monotonic, align 4
  %begun = icmp eq i32 %owned, %turn
  br i1 %begun, label %looked, label %take
take:
  %before = sub i32 %turn, 1
  %got = cmpxchg ptr %claim, i32 %before, i32 %turn acq_rel monotonic
  %taken = extractvalue { i32, i1 } %got, 1
  br i1 %taken, label %instead, label %looked
instead:
  %its = add i64 %j, 1
  call void @share(ptr %fn, ptr %ctx, i64 %its, i64 %count, i64 %team)
  %fewer = atomicrmw sub ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 2), i32 1 acq_rel
  br label %looked
looked:
  %further = add i64 %j, 1
  %others_left = icmp ult i64 %further, %helpers
  br i1 %others_left, label %look, label %watch
watch:
  %began = call i64 @llvm.readcyclecounter()
  br label %spin
spin:
  %left = load atomic i32, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 2) acquire, align 4
  %over = icmp eq i32 %left, 0
  br i1 %over, label %done, label %again
again:
  call void @llvm.x86.sse2.pause()
  %now = call i64 @llvm.readcyclecounter()
  %spent = sub i64 %now, %began
  %patient = icmp ult i64 %spent, 1000000
  br i1 %patient, label %spin, label %lie
lie:
  store atomic i32 1, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 3) seq_cst, align 4
  br label %check
check:
  %rest = load atomic i32, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 2) seq_cst, align 4
  %ready = icmp eq i32 %rest, 0
  br i1 %ready, label %rise, label %wait
wait:
  call i64 (i64, ...) @syscall(i64 202, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 2), i32 128, i32 %rest,
                               ptr null)
  br label %check
rise:
  store atomic i32 0, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 3) seq_cst, align 4
  br label %done
done:
  store atomic i32 0, ptr @morello_pool release, align 64
  ret void

alone:
  call void @share(ptr %fn, ptr %ctx, i64 0, i64 %count, i64 1)
  ret void
}

; The calls number %first, %first + %step, ... below %count.
define internal void @share(ptr %fn, ptr %ctx, i64 %first, i64 %count, i64 %step) {
  br label %head
head:
  %t = phi i64 [ %first, %0 ], [ %next, %body ]
  %inside = icmp slt i64 %t, %count
  br i1 %inside, label %body, label %end
body:
  call void %fn(ptr %ctx, i64 %t)
  %next = add i64 %t, %step
  br label %head
end:
  ret void
}

; Makes helpers until there are %want; returns how many there are. They take no signals.
define internal i64 @gather(i64 %want) noinline {
  %all = alloca [16 x i64]
  %old = alloca [16 x i64]
  %thread = alloca i64
  %have = load i64, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 11)
  %failed = load i64, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 12)
  %willing = icmp eq i64 %failed, 0
  %short = icmp ult i64 %have, %want
  %try = and i1 %willing, %short
  br i1 %try, label %block, label %end
block:
  call void @llvm.memset.p0.i64(ptr %all, i8 -1, i64 128, i1 false)
  call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  br label %make
make:
  %i = phi i64 [ %have, %block ], [ %next, %made ]
  %box = getelementptr %pool, ptr @morello_pool, i64 0, i32 14, i64 %i
  %error = call i32 @pthread_create(ptr %thread, ptr null, ptr @helper, ptr %box)
  %fine = icmp eq i32 %error, 0
  br i1 %fine, label %made, label %give_up
made:
  %id = load i64, ptr %thread
  call i32 @pthread_detach(i64 %id)
  %next = add i64 %i, 1
  store i64 %next, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 11)
  %more = icmp ult i64 %next, %want
  br i1 %more, label %make, label %unblock
give_up:
  store i64 1, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 12)
  br label %unblock
unblock:
  call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  %now = load i64, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 11)
  ret i64 %now
end:
  ret i64 %have
}

; What a helper does, for ever. %box: its slot.
define internal ptr @helper(ptr %box) {
  %here = ptrtoint ptr %box to i64
  %start = ptrtoint ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 14) to i64
  %bytes = sub i64 %here, %start
  %index = lshr exact i64 %bytes, 7
  %first = add i64 %index, 1
  %sleep = getelementptr %slot, ptr %box, i64 0, i32 1
  %owner = getelementptr %slot, ptr %box, i64 0, i32 3
  br label %idle
idle:
  %seen = phi i32 [ 0, %0 ], [ %job, %claim ], [ %job, %work ], [ %job, %ring ]
  %began = call i64 @llvm.readcyclecounter()
  br label %spin
spin:
  %posted = load atomic i32, ptr %box acquire, align 4
  %fresh = icmp ne i32 %posted, %seen
  br i1 %fresh, label %claim, label %again
again:
  call void @llvm.x86.sse2.pause()
  %now = call i64 @llvm.readcyclecounter()
  %spent = sub i64 %now, %began
  %patient = icmp ult i64 %spent, 1000000
  br i1 %patient, label %spin, label %park
park:
  store atomic i32 1, ptr %sleep seq_cst, align 4
  br label %check
check:
  %later = load atomic i32, ptr %box seq_cst, align 4
  %new = icmp ne i32 %later, %seen
  br i1 %new, label %rise, label %wait
wait:
  call i64 (i64, ...) @syscall(i64 202, ptr %box, i32 128, i32 %seen, ptr null)
  br label %check
rise:
  store atomic i32 0, ptr %sleep seq_cst, align 4
  br label %claim

claim:
  %job = phi i32 [ %posted, %spin ], [ %later, %rise ]
  %previous = sub i32 %job, 1
  %got = cmpxchg ptr %owner, i32 %previous, i32 %job acq_rel monotonic
  %mine = extractvalue { i32, i1 } %got, 1
  br i1 %mine, label %work, label %idle

work:
  call void @llvm.x86.sse.ldmxcsr(ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 9))
  %fn = load ptr, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 5)
  %ctx = load ptr, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 6)
  %count = load i64, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 7)
  %team = load i64, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 8)
  call void @share(ptr %fn, ptr %ctx, i64 %first, i64 %count, i64 %team)
  %before = atomicrmw sub ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 2), i32 1 seq_cst
  %waiting = load atomic i32, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 3) seq_cst, align 4
  %last = icmp eq i32 %before, 1
  %slept = icmp ne i32 %waiting, 0
  %call = and i1 %last, %slept
  br i1 %call, label %ring, label %idle
ring:
  call i64 (i64, ...) @syscall(i64 202, ptr getelementptr (%pool, ptr @morello_pool, i32 0, i32 2), i32 129, i32 1)
  br label %idle
}
