/**
 * What somebody saw who follows a task's event streams, in the order of seeing.
 *
 * - `ServiceRefusal`: `server` said that this is all, or `farewell` as it goes down; the `client` hung up; or the stream was
 *   `torn`. `quietMs`: since the last event.
 */
export type Sight =
  | { readonly _tag: "Connected"; readonly replica: number; readonly after: string | undefined }
  | { readonly _tag: "Event"; readonly id: string }
  | { readonly _tag: "Reset"; readonly reason: string; readonly from: string | null }
  | { readonly _tag: "Closed"; readonly by: "server" | "farewell" | "client" | "torn"; readonly quietMs: number }

export interface Follower {
  readonly name: string
  readonly sights: ReadonlyArray<Sight>
  /** `came`: the server ended its stream behind the newest event. `waits`: it should have, and has not. */
  readonly end: "came" | "left" | "waits"
}

/** What is known of a task when the run is over. */
export interface Task {
  readonly id: string
  /** In the order of publishing. One that was not confirmed may be there, or not. */
  readonly published: ReadonlyArray<{ readonly id: string; readonly isConfirmed: boolean }>
  /** What the store keeps. */
  readonly history: { readonly ids: ReadonlyArray<string>; readonly oldest: number; readonly newest: number }
  readonly followers: ReadonlyArray<Follower>
}

export interface Evidence {
  readonly tasks: ReadonlyArray<Task>
  /** Events of a task are stored in the order of publishing: so it is on a stream, see `StatusHub.make`. */
  readonly isOrdered: boolean
  /** The `history_maxlen` of the store. Without an order of publishing it has to be more than any task has events. */
  readonly kept: number
  readonly isTerminal: (eventId: string) => boolean
}

export interface Verdict {
  readonly confirmed: number
  readonly unknown: number
  readonly received: number
  readonly connections: number
  readonly resets: number
  /** The longest silence of a stream between the last event of all and its end. */
  readonly lingeredMs: number
  /** Everything that should not be, each in a sentence that begins with the task. */
  readonly wrong: ReadonlyArray<string>
}

/**
 * From the evidence to what is to be said of it. For every task there is one sequence of events, which is its truth: in
 * the order of publishing, everything confirmed and of the rest what anybody has seen. On a queue two hubs may store two
 * events of one task in either order, so the store's own order is the truth there, and publishing says only which events
 * it consists of.
 *
 * The store must hold the end of that sequence, as much of it as it keeps. Every follower must have seen a part of it
 * without a gap or a repetition, from the beginning, or from where the history began that it was given. A `reset` makes
 * void what it saw before, and is right only if its last event is no longer kept. Who did not leave must have come to
 * the end of the sequence, and of the stream.
 */
export const judge = ({ isOrdered, isTerminal, kept, tasks }: Evidence): Verdict => {
  const wrong: Array<string> = []
  let lingeredMs = 0
  for (const task of tasks) {
    const truth = isOrdered ? asPublished(task) : task.history.ids
    const say = (what: string) => void wrong.push(`${task.id}: ${what}`)
    for (const what of isOrdered ? keptWrongly(task, truth, kept) : storedWrongly(task)) say(what)
    for (const follower of task.followers) {
      const seen = follow(follower, truth, { ends: endsOf(task, truth, isTerminal), kept })
      for (const what of seen.wrong) say(`${follower.name} ${what}`)
      lingeredMs = Math.max(lingeredMs, seen.lingeredMs)
    }
  }
  const published = tasks.flatMap(({ published }) => published)
  const sights = tasks.flatMap(({ followers }) => followers.flatMap(({ sights }) => sights))
  const count = (tag: Sight["_tag"]) => sights.filter(({ _tag }) => _tag === tag).length
  return {
    confirmed: published.filter(({ isConfirmed }) => isConfirmed).length,
    unknown: published.filter(({ isConfirmed }) => !isConfirmed).length,
    received: count("Event"),
    connections: count("Connected"),
    resets: count("Reset"),
    lingeredMs,
    wrong
  }
}

const asPublished = ({ followers, history, published }: Task): ReadonlyArray<string> => {
  const received = followers.flatMap(({ sights }) =>
    sights.flatMap((sight) => (sight._tag === "Event" ? sight.id : []))
  )
  const seen = new Set([...received, ...history.ids])
  return published.flatMap(({ id, isConfirmed }) => (isConfirmed || seen.has(id) ? id : []))
}

/** Against the order of publishing. */
const keptWrongly = ({ history, published }: Task, truth: ReadonlyArray<string>, kept: number): Array<string> => {
  const wrong: Array<string> = []
  const { ids, newest, oldest } = history
  const expected = truth.slice(-kept)
  if (ids.join() !== expected.join()) {
    const missing = expected.filter((id) => !ids.includes(id))
    wrong.push(`the store has ${ids.join(" ")} and should have ${expected.join(" ")}; it lacks ${missing.join(" ")}`)
  }
  // those in doubt that nobody saw may have been stored, and cut off since
  const unseen = published.length - truth.length
  const cutOff = newest > kept ? unseen : 0
  if (newest < truth.length || newest > truth.length + cutOff) {
    wrong.push(`the store counts ${newest} events, and there are ${truth.length}`)
  }
  if (newest - oldest + 1 !== ids.length) wrong.push(`the store counts ${oldest} to ${newest}, and has ${ids.length}`)
  return wrong
}

/** Where any order is as good. */
const storedWrongly = ({ history, published }: Task): Array<string> => {
  const { ids, newest } = history
  const known = new Set(published.map(({ id }) => id))
  const lost = published.filter(({ id, isConfirmed }) => isConfirmed && !ids.includes(id)).map(({ id }) => id)
  const doubled = ids.filter((id, index) => ids.indexOf(id) !== index)
  const strange = ids.filter((id) => !known.has(id))
  return [
    ...(lost.length > 0 ? [`the store lacks ${lost.join(" ")}`] : []),
    ...(doubled.length > 0 ? [`the store has ${doubled.join(" ")} twice`] : []),
    ...(strange.length > 0 ? [`the store has ${strange.join(" ")}, which nobody published`] : []),
    ...(newest === ids.length ? [] : [`the store counts ${newest} events, and has ${ids.length}`])
  ]
}

/**
 * The places in the truth behind which the task is at its end: a terminal event, and behind it at most what was published
 * before it and stored late.
 */
const endsOf = (
  { published }: Task,
  truth: ReadonlyArray<string>,
  isTerminal: Evidence["isTerminal"]
): ReadonlySet<number> => {
  const order = new Map(published.map(({ id }, place) => [id, place]))
  const ends = new Set<number>()
  let end: number | undefined
  for (const [place, id] of truth.entries()) {
    const at = order.get(id) ?? truth.length
    if (isTerminal(id)) end = Math.max(end ?? at, at)
    else if (end !== undefined && at > end) end = undefined
    if (end !== undefined) ends.add(place)
  }
  return ends
}

const follow = (
  { end, sights }: Follower,
  truth: ReadonlyArray<string>,
  { ends, kept }: { readonly ends: ReadonlySet<number>; readonly kept: number }
): { readonly wrong: ReadonlyArray<string>; readonly lingeredMs: number } => {
  const wrong: Array<string> = []
  const places = new Map(truth.map((id, place) => [id, place]))
  /** Before its first event since the beginning, or since a reset. */
  const nowhere = -1
  let at = nowhere
  /** The last event that it knows of, whatever was reset: by this it asks to go on. */
  let known = nowhere
  /** Where the history that it is given must begin; not known of one whose front may be cut off. */
  let begins = truth.length > kept ? undefined : truth[0]
  let lingeredMs = 0
  for (const sight of sights) {
    switch (sight._tag) {
      case "Event": {
        const place = places.get(sight.id)
        if (place === undefined) wrong.push(`got ${sight.id}, which is none of the task's`)
        else if (at === nowhere && begins !== undefined && sight.id !== begins) {
          wrong.push(`began with ${sight.id} in place of ${begins}`)
        } else if (at !== nowhere && place <= at) wrong.push(`got ${sight.id} behind ${truth[at]}`)
        else if (at !== nowhere && place > at + 1) {
          wrong.push(`got ${sight.id} behind ${truth[at]}, and not ${truth.slice(at + 1, place).join(" ")}`)
        }
        if (place !== undefined) at = known = place
        break
      }
      case "Reset": {
        const from = sight.from === null ? undefined : places.get(sight.from)
        if (sight.reason !== "history_trimmed" || from === undefined || known === nowhere || from <= known) {
          wrong.push(`had ${truth[known]}, and was reset to ${sight.from} as ${sight.reason}`)
        }
        begins = sight.from ?? undefined
        at = nowhere
        break
      }
      case "Closed": {
        const isEnd = ends.has(at)
        if (sight.by === "server" && !isEnd) wrong.push(`was told that the task ends with ${truth[at]}`)
        if (isEnd && at === truth.length - 1) lingeredMs = Math.max(lingeredMs, sight.quietMs)
      }
    }
  }
  if (end !== "left" && at !== truth.length - 1) wrong.push(`stopped at ${truth[at]} before ${truth.at(-1)}`)
  else if (end === "waits") wrong.push(`has everything, and waits for the end of its stream`)
  return { wrong, lingeredMs }
}
