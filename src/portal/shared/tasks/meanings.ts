import type { LetterState, QueueState, Verdict } from "../../api/TaskTypes.ts"
import type { Meaning } from "../words/StatusWord.tsx"

/** Programs choose the names of their statuses. Those of the lifecycle, and what their names say, give the colour. */
const patterns: ReadonlyArray<readonly [RegExp, Meaning]> = [
  [/fail|error|dead|reject/i, "bad"],
  [/cancel|skip/i, "idle"],
  [/retr|wait|pend|queue|schedul/i, "waiting"],
  [/complete|done|success|finish|sent/i, "good"]
]

export const meaningOfTaskStatus = (status: string): Meaning =>
  patterns.find(([pattern]) => pattern.test(status))?.[1] ?? "working"

const verdicts: Readonly<Record<Verdict, readonly [Meaning, string]>> = {
  finished: ["good", "finished"],
  acknowledged: ["working", "acknowledged"],
  waiting_for_children: ["waiting", "waiting for children"],
  dead_lettered: ["bad", "dead-lettered"],
  rejected: ["bad", "rejected"],
  waiting_for_retry: ["waiting", "waiting for its retry"],
  being_handled: ["working", "being handled"],
  queued: ["waiting", "queued"],
  no_consumer: ["warning", "no consumer"],
  no_queue: ["bad", "no queue"],
  unknown: ["idle", "unknown"]
}

/** A task is `finished` by any terminal status, so that one which has failed is no success. */
export const meaningOfVerdict = (verdict: Verdict, status: string | null): Meaning =>
  verdict === "finished" && status !== null ? meaningOfTaskStatus(status) : verdicts[verdict][0]

export const verdictWords = (verdict: Verdict): string => verdicts[verdict][1]

export const meaningOfQueue: Readonly<Record<QueueState, Meaning>> = {
  well: "good",
  growing: "warning",
  stalled: "bad",
  "no consumer": "bad",
  paused: "idle",
  resuming: "working",
  alarm: "bad",
  unknown: "warning"
}

interface LetterFacts {
  readonly state: LetterState
  readonly replay_outcome?: { readonly outcome: "published" | "handled" | "failed_again" } | undefined
}

/** What is known of a dead letter. A replay is a success only once a status has proved it. */
export const letterWords = ({ replay_outcome, state }: LetterFacts): readonly [Meaning, string] => {
  if (state === "replayed")
    switch (replay_outcome?.outcome) {
      case "handled":
        return ["good", "handled"]
      case "failed_again":
        return ["bad", "failed again"]
      default:
        return ["waiting", "published, not proved yet"]
    }
  return letterStates[state]
}

const letterStates: Readonly<Record<Exclude<LetterState, "replayed">, readonly [Meaning, string]>> = {
  dead_lettered: ["bad", "dead-lettered"],
  replay_unknown: ["warning", "replay unknown"],
  replaced: ["idle", "replaced by an edit"],
  archived: ["idle", "archived"]
}
