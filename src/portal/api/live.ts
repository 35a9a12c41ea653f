import { useQueryClient } from "@tanstack/react-query"
import { useEffect, useEffectEvent, useSyncExternalStore } from "react"
import { allows, readSession } from "./session.ts"

export type LiveTopic = "requests" | "limits" | "configuration" | "tasks" | "dead_letters" | "queues" | "workers"

/** What happened since the last event: all are counted, and the latest are described. */
export interface Digest {
  readonly count: number
  readonly latest: ReadonlyArray<Readonly<Record<string, unknown>>>
}

/** By topic and kind, such as `{"requests": {"ended": {…}}}`. At most four come in a second. */
export type LiveEvent = Partial<Record<LiveTopic, Readonly<Record<string, Digest>>>>

/**
 * - `live`: events arrive, or a tab takes the connection over from another one, which has three seconds for it.
 * - `paused`: the tab is hidden, or the person has paused.
 * - `reconnecting`: there is no connection, or not yet; what is missed arrives with the next one.
 * - `reset`: events were missing a moment ago, so that what is shown was read again.
 * - `off`: no topic is open to the token.
 */
export type LiveState = "live" | "paused" | "reconnecting" | "reset" | "off"

/** What the tab with the connection tells the other tabs. */
type Told =
  | { readonly kind: "event"; readonly id: string; readonly event: LiveEvent }
  | { readonly kind: "reset"; readonly id: string | undefined }
  | { readonly kind: "state"; readonly state: LiveState; readonly id: string | undefined }

/** A tab that begins to follow sends this to the others. The tab with the connection answers with its state. */
interface Asked {
  readonly kind: "asked"
}

type Listener = (told: Exclude<Told, { readonly kind: "state" }>) => void

const topicScopes = ["usage:read", "audit:read", "tasks:read", "tasks:operate"]
const retryMs = 3_000
/** A connection that one tab takes over from another counts as lost if it does not open within this time. */
const takenOverWithinMs = 3_000
/** For so long the page says that it was read again. */
const resetMs = 5_000

/**
 * One connection for all tabs of the browser. The tab that holds the lock has it, and tells the others what it hears.
 * A hidden tab gives the lock away; the next one goes on after the last event, so that nothing is shown twice.
 */
class LiveConnection {
  state: LiveState = "off"
  readonly stateListeners = new Set<() => void>()
  readonly listeners = new Set<Listener>()
  private readonly channel = new BroadcastChannel("svc-live")
  /** The next connection resumes after this event. A tab that knows of none misses what happens until its own is open. */
  private lastId: string | undefined
  private isPausedByPerson = false
  /** While this tab was paused, another one heard something. */
  private hasMissed = false
  private resetTimer: number | undefined
  private release: (() => void) | undefined
  private source: EventSource | undefined

  start(): () => void {
    this.channel.onmessage = ({ data }: MessageEvent<Told | Asked>) => {
      if (data.kind !== "asked") this.take(data)
      else if (this.source !== undefined) this.tellOthers()
    }
    const follow = () => (this.isPaused() ? this.stop("paused") : this.compete())
    document.addEventListener("visibilitychange", follow)
    this.toggle = () => {
      this.isPausedByPerson = !this.isPausedByPerson
      follow()
    }
    follow()
    return () => {
      document.removeEventListener("visibilitychange", follow)
      this.stop("off")
    }
  }

  toggle = (): void => {}

  private isPaused(): boolean {
    return document.hidden || this.isPausedByPerson
  }

  private become(state: LiveState): void {
    window.clearTimeout(this.resetTimer)
    if (this.state === state) return
    this.state = state
    for (const listener of this.stateListeners) listener()
  }

  private stop(state: LiveState): void {
    this.release?.()
    this.release = undefined
    this.become(state)
  }

  /** Waits for the lock of the connection. Until then another tab has it and tells what it hears. */
  private compete(): void {
    if (this.release !== undefined) return
    const waiting = new AbortController()
    let giveBack = () => {}
    const held = new Promise<void>((resolve) => {
      giveBack = resolve
    })
    this.release = () => {
      waiting.abort()
      this.source?.close()
      this.source = undefined
      giveBack()
    }
    this.become("reconnecting")
    this.channel.postMessage({ kind: "asked" })
    // the next connection begins after the last event, and not after the last one that was shown here
    if (this.hasMissed) this.take({ kind: "reset", id: undefined })
    this.hasMissed = false
    const hold = async () => {
      this.connect()
      await held
    }
    navigator.locks.request("svc-live", { signal: waiting.signal }, hold).catch(() => {
      // the tab was hidden before it got the lock
    })
  }

  private connect(): void {
    const resume = this.lastId === undefined ? "" : `?last_event_id=${encodeURIComponent(this.lastId)}`
    const isPlaceUnknown = this.lastId === undefined && this.state === "live"
    const source = new EventSource(`/admin-ui/live${resume}`)
    this.source = source
    // a connection that takes over resumes after the last event, so it is news only if it does not open soon
    window.setTimeout(() => {
      if (source.readyState === EventSource.CONNECTING) this.tellState("reconnecting")
    }, takenOverWithinMs)
    source.onopen = () => this.tellState("live")
    if (isPlaceUnknown)
      source.addEventListener("open", () => this.tell({ kind: "reset", id: undefined }), { once: true })
    source.addEventListener("ready", ({ lastEventId }) => {
      this.lastId = lastEventId
      this.tellOthers()
    })
    source.addEventListener("live", ({ data, lastEventId }) =>
      this.tell({ kind: "event", id: lastEventId, event: JSON.parse(data) })
    )
    source.addEventListener("reset", ({ lastEventId }) => this.tell({ kind: "reset", id: lastEventId }))
    source.addEventListener("end", () => void readSession())
    source.onerror = () => {
      this.tellState("reconnecting")
      // the browser itself connects again unless the server refused, which it does while it starts and after a sign-out
      if (source.readyState !== EventSource.CLOSED || this.source !== source) return
      void readSession()
      window.setTimeout(() => {
        if (this.source === source) this.connect()
      }, retryMs)
    }
  }

  /** Tells the other tabs how this one follows, and where the stream is. */
  private tellOthers(): void {
    // a reset concerns those who have missed something
    this.post({ kind: "state", state: this.state === "reset" ? "live" : this.state, id: this.lastId })
  }

  private tellState(state: LiveState): void {
    this.tell({ kind: "state", state, id: this.lastId })
  }

  private tell(told: Told): void {
    this.post(told)
    this.take(told)
  }

  private post(told: Told): void {
    this.channel.postMessage(told)
  }

  private take(told: Told): void {
    this.lastId = told.id ?? this.lastId
    if (this.isPaused()) {
      this.hasMissed ||= told.kind !== "state"
      return
    }
    if (told.kind === "state") {
      this.become(told.state)
      return
    }
    if (told.kind === "reset" && this.state === "live") {
      this.become("reset")
      this.resetTimer = window.setTimeout(() => this.become("live"), resetMs)
    }
    for (const listener of this.listeners) listener(told)
  }
}

const connection = new LiveConnection()

/** Follows what happens for as long as somebody is signed in. */
export const useLiveConnection = (scopes: ReadonlyArray<string>): void => {
  const mayFollow = allows(scopes, topicScopes)
  // a session that is read again, as after a refusal, is no reason to connect again at once
  const held = scopes.join(" ")
  // biome-ignore lint/correctness/useExhaustiveDependencies: other scopes show other topics
  useEffect(() => (mayFollow ? connection.start() : undefined), [mayFollow, held])
}

const whenStateChanges = (listener: () => void) => {
  connection.stateListeners.add(listener)
  return () => connection.stateListeners.delete(listener)
}

export const useLiveState = (): LiveState => useSyncExternalStore(whenStateChanges, () => connection.state)

/** Returns whether the tab is hidden or the person has paused. Nothing changes by itself then. */
export const useIsPaused = (): boolean => useSyncExternalStore(whenStateChanges, () => connection.state === "paused")

/** Pauses the live data, or goes on after the last event that was shown. */
export const toggleLive = (): void => connection.toggle()

/** Calls `onEvent` for what happens. After `onReset`, events are missing: read again what is shown. */
export const useLive = (onEvent: (event: LiveEvent) => void, onReset: () => void = () => {}): void => {
  const hear = useEffectEvent<Listener>((told) => (told.kind === "event" ? onEvent(told.event) : onReset()))
  useEffect(() => {
    const listener: Listener = (told) => hear(told)
    connection.listeners.add(listener)
    return () => {
      connection.listeners.delete(listener)
    }
  }, [])
}

/**
 * Reads again what `paths` name once something happens in a topic: at most every two seconds, and never before the last
 * answer has arrived. While there is no connection, it reads again after each `pollEveryMs`.
 */
export const useLiveRefresh = (topics: ReadonlyArray<LiveTopic>, paths: ReadonlyArray<string>): void => {
  const client = useQueryClient()
  const isLost = useLiveState() === "reconnecting"
  /** Reads what is owed again, and returns what still is: an answer that is awaited may be older than what happened. */
  const refresh = useEffectEvent((owed: ReadonlyArray<string> = paths): ReadonlyArray<string> => {
    const awaited = owed.filter((path) => client.isFetching({ queryKey: [path] }) > 0)
    for (const path of owed) if (!awaited.includes(path)) void client.invalidateQueries({ queryKey: [path] })
    return awaited
  })
  useEffect(() => {
    let timer: number | undefined
    /** `undefined`: something has happened since they were read, and all of them are owed. */
    let owed: ReadonlyArray<string> | undefined
    const later = () => {
      timer ??= window.setTimeout(() => {
        timer = undefined
        owed = refresh(owed)
        if (owed.length > 0) later()
      }, refreshEveryMs)
    }
    const soon = () => {
      owed = undefined
      later()
    }
    const listener: Listener = (told) => {
      if (told.kind === "reset" || topics.some((topic) => told.event[topic] !== undefined)) soon()
    }
    connection.listeners.add(listener)
    return () => {
      connection.listeners.delete(listener)
      window.clearTimeout(timer)
    }
  }, [topics])
  useEffect(() => {
    if (!isLost) return
    const timer = window.setInterval(() => refresh(), pollEveryMs)
    return () => window.clearInterval(timer)
  }, [isLost])
}

const refreshEveryMs = 2_000
/** Also the time that a connection has to come back before it is worth a read. */
const pollEveryMs = 10_000
