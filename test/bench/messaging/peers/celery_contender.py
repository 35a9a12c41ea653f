"""Celery as Debian packages it, on RabbitMQ, with results in Redis: two prefork processes, late acknowledgements.

Prints the port that it takes work on, and ends with its parent. The worker is a process below this one; it consumes from
a queue only while work says so.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, HTTPServer

import redis
from celery import Celery
from kombu import Exchange, Queue

prefix = os.environ["BENCH_PREFIX"]
results = os.environ["CELERY_RESULTS"]
tasks = f"{prefix}classic.tasks"
idle = f"{prefix}idle"

app = Celery("celery_contender", broker=os.environ["RABBITMQ_URL"], backend=results)
app.conf.update(
    task_queues=[Queue(name, Exchange(f"{prefix}celery", type="direct"), routing_key=name) for name in (tasks, idle)],
    task_default_queue=tasks,
    task_default_exchange=f"{prefix}celery",
    task_default_routing_key=tasks,
    task_acks_late=True,
    task_track_started=True,
    result_expires=600,
    broker_transport_options={"confirm_publish": True},
    worker_prefetch_multiplier=50,
    worker_send_task_events=False,
    control_exchange=f"{prefix}control",
    control_queue_expires=10,
    event_exchange=f"{prefix}events",
)


@app.task(name="noop")
def noop(task):
    pass


def task_of(task_id):
    return {
        "task_id": task_id,
        "payload": {"text": ("It waits for its turn. " * 16)[:357]},
        "created_at": "2026-11-21T12:00:00.123000Z",
        "task_type": "noop",
        "spec_version": "1.0",
    }


task = task_of("00000000-0000-4000-8000-000000000000")


def percentile(ascending, p):
    return ascending[min(len(ascending) - 1, int(len(ascending) * p / 100))]


def counted(latencies, begun):
    latencies.sort()
    return {
        "messages": len(latencies),
        "elapsedMs": (time.perf_counter() - begun) * 1000,
        **({"p50": percentile(latencies, 50), "p99": percentile(latencies, 99)} if latencies else {}),
        "failed": 0,
    }


def publish(work):
    """One after the other: its API knows nothing else."""
    begun = time.perf_counter()
    until = begun + work["ms"] / 1000
    latencies = []
    while (since := time.perf_counter()) < until:
        noop.apply_async((task,), ignore_result=False)
        latencies.append((time.perf_counter() - since) * 1000)
    return counted(latencies, begun)


def consume(work):
    """Results are counted in a database of Redis that nobody else uses."""
    store = redis.Redis.from_url(results)
    delete(store)
    consuming(True)
    handled = 0
    ahead = 0
    first = begun = time.perf_counter()
    while handled < work["messages"] and time.perf_counter() < begun + 60:
        time.sleep(0.01)
        before, handled = handled, store.dbsize()
        if before == 0:
            first, ahead = time.perf_counter(), handled
    elapsed = time.perf_counter() - first
    consuming(False)
    delete(store)
    missing = work["messages"] - handled
    return {
        "messages": handled - ahead,
        "elapsedMs": elapsed * 1000,
        "failed": missing,
        **({"problem": f"{missing} of {work['messages']} were not handled in time"} if missing > 0 else {}),
    }


def round_trip(work):
    consuming(True)
    begun = time.perf_counter()
    until = begun + work["ms"] / 1000
    latencies = []
    waiting = deque()
    while True:
        while len(waiting) < work["window"] and (since := time.perf_counter()) < until:
            waiting.append((since, noop.apply_async((task,))))
        if not waiting:
            break
        since, result = waiting.popleft()
        result.get(timeout=30)
        latencies.append((time.perf_counter() - since) * 1000)
    done = counted(latencies, begun)
    consuming(False)
    delete(redis.Redis.from_url(results))
    return done


def empty(_work):
    with app.connection_for_write() as connection:
        connection.default_channel.queue_purge(tasks)
    return {"messages": 0, "elapsedMs": 0, "failed": 0}


def consuming(on):
    (app.control.add_consumer if on else app.control.cancel_consumer)(tasks, reply=True, timeout=5, limit=1)


def delete(store):
    for keys in iter(lambda: list(store.scan_iter("celery-task-meta-*", 1000))[:10_000], []):
        store.delete(*keys)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        work = json.loads(self.rfile.read(int(self.headers["content-length"])))
        perform = {"Publish": publish, "Consume": consume, "RoundTrip": round_trip, "Empty": empty}[work["_tag"]]
        body = json.dumps(perform(work)).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def end_with(parent, worker):
    """The channel to the parent closes when the parent is gone."""
    while os.read(parent, 4096):
        pass
    worker.terminate()
    worker.wait(10)
    os._exit(0)


if __name__ == "__main__":
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "celery_contender", "worker", "-c", "2", "-Q", idle, "-l", "ERROR"]
        + ["--without-gossip", "--without-mingle", "--without-heartbeat", "-n", f"{prefix}@bench"],
        cwd=os.path.dirname(os.path.abspath(__file__)),
        stdout=subprocess.DEVNULL,
    )
    channel = os.environ.get("NODE_CHANNEL_FD")
    if channel is not None:
        threading.Thread(target=end_with, args=(int(channel), worker), daemon=True).start()
    for _ in range(60):
        if app.control.ping(timeout=1, limit=1):
            break
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    server = HTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    try:
        server.serve_forever()
    finally:
        worker.terminate()
        worker.wait(10)
