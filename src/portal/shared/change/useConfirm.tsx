import { useQueryClient } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { ApiError } from "../../api/ApiError.ts"
import { failureOf } from "../../api/failure.ts"
import { ChangeDialog } from "../dialogs/ChangeDialog.tsx"
import { type Guard, GuardedChange, type Versioned } from "../dialogs/GuardedChange.tsx"
import { readAgain } from "./readAgain.ts"
import { type Told, useTell } from "./useTell.tsx"

interface Asked extends Pick<Told, "audit" | "done"> {
  readonly title: string
  readonly action: string
  readonly onDone?: (result: unknown) => void
}

interface PlainChange extends Asked {
  /** What changes, and whom it concerns. */
  readonly body: ReactNode
  /** A change that cannot be taken back is confirmed by typing this name. */
  readonly name?: string
  readonly run: () => Promise<unknown>
  readonly undo?: () => Promise<unknown>
}

/** The answer of a change to an object that this version of the server cannot read. */
interface Unreadable {
  readonly unreadable: true
}

/** Another address removes the credential that belonged to the old one. */
type After<Entity> = Entity & { readonly credential_cleared?: true }

/** A change that two people may make at once. */
interface ConditionalChange<Entity extends Versioned> extends Asked {
  readonly guard: Guard<Entity>
  /** Whom it concerns. The dialog shows what changes. */
  readonly body?: ReactNode
  /** Sends the `updated_at` of the version as `expected_updated_at`. */
  readonly run: (version: Entity) => Promise<After<Entity> | Unreadable>
  /**
   * Brings back the version that the change was made to. Sends the `updated_at` of `after`, so that it takes back
   * nothing that somebody else has changed since. Nobody can bring back a secret, so a change of one has no Undo.
   */
  readonly undo?: (version: Entity, after: Entity) => Promise<unknown>
}

export type Change<Entity extends Versioned = Versioned> = PlainChange | ConditionalChange<Entity>

/**
 * Returns `ask`, which shows a change before it is made, and the dialog that shows it. With a guard, the dialog shows
 * both versions if somebody else was faster.
 */
export const useConfirm = <Entity extends Versioned = Versioned>() => {
  const client = useQueryClient()
  const tell = useTell()
  const [change, setChange] = useState<Change<Entity>>()
  const [error, setError] = useState<ApiError | null>(null)
  const [isBusy, setBusy] = useState(false)

  const close = () => {
    setChange(undefined)
    setError(null)
  }
  const confirm = async <Result,>(
    { audit, done, onDone }: Asked,
    run: () => Promise<Result>,
    undoOf: (result: Result) => Told["undo"]
  ) => {
    setBusy(true)
    setError(null)
    try {
      const result = await run()
      await readAgain(client)
      close()
      onDone?.(result)
      tell({ done, audit, undo: undoOf(result) })
    } catch (cause) {
      setError(failureOf(cause))
    } finally {
      setBusy(false)
    }
  }

  const dialogOf = (asked: Change<Entity>) => {
    const { action, body, title } = asked
    const shared = { title, action, isBusy, error, onClose: close }
    if ("guard" in asked) {
      const { guard, run, undo } = asked
      const undoOf = (version: Entity, after: After<Entity> | Unreadable): Told["undo"] =>
        undo === undefined || "unreadable" in after || after.credential_cleared === true
          ? undefined
          : () => undo(version, after)
      const apply = (version: Entity) =>
        confirm(
          asked,
          () => run(version),
          (after) => undoOf(version, after)
        )
      return (
        <GuardedChange {...shared} {...guard} onConfirm={(version) => void apply(version)}>
          {body}
        </GuardedChange>
      )
    }
    const { name, run, undo } = asked
    return (
      <ChangeDialog
        {...shared}
        {...(name !== undefined && { name })}
        onConfirm={() => void confirm(asked, run, () => undo)}
      >
        {body}
      </ChangeDialog>
    )
  }
  return { ask: setChange, dialog: change !== undefined && dialogOf(change) }
}
