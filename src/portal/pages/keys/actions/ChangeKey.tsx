import { useQueryClient } from "@tanstack/react-query"
import type { ReactNode } from "react"
import type { FieldError } from "../../../api/ApiError.ts"
import { call } from "../../../api/control.ts"
import type { BodyOf } from "../../../api/Endpoints.ts"
import { useApiWrite } from "../../../api/queries.ts"
import { GuardedChange, tellRefused } from "../../../shared/dialogs/GuardedChange.tsx"
import { type Key, keyFields, keyName, keyPath, staleAfterKeys } from "../words/key.ts"

type KeyPatch = BodyOf<"PATCH", typeof keyPath>

interface Props {
  readonly base: Key
  readonly changes: KeyPatch
  readonly onClose: () => void
  readonly onDone: () => void
  /** The server refused values: the form shows why. */
  readonly onRefused?: (errors: ReadonlyArray<FieldError>) => void
  readonly children?: ReactNode
}

/** The fields that the patch sets, by the same names as those of the key. */
const flat = ({ guardrail_policy, policy, ...rest }: KeyPatch): Readonly<Record<string, unknown>> => ({
  ...rest,
  ...prefixed("policy", policy),
  ...prefixed("guardrail_policy", guardrail_policy)
})

const prefixed = (prefix: string, fields: object | null | undefined): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(fields ?? {}).map(([name, value]) => [`${prefix}.${name}`, value]))

/** Shows the difference of a change of a key, and makes it unless somebody else was faster. */
export const ChangeKey = ({ base, changes, children, onClose, onDone, onRefused }: Props) => {
  const client = useQueryClient()
  const update = useApiWrite("PATCH", keyPath, staleAfterKeys)
  const params = { id: base.id }
  const reread = () =>
    client.fetchQuery({
      staleTime: 0,
      queryKey: [keyPath, params, undefined],
      queryFn: () => call("GET", keyPath, { params })
    })
  return (
    <GuardedChange
      title={`Change ${keyName(base)}`}
      action="Change it"
      base={base}
      reread={reread}
      fieldsOf={keyFields}
      changes={flat(changes)}
      isBusy={update.isPending}
      error={update.error}
      onConfirm={({ updated_at }) =>
        update.mutate(
          { params, body: { ...changes, expected_updated_at: updated_at } },
          { onSuccess: onDone, onError: (error) => tellRefused(error, onRefused) }
        )
      }
      onClose={onClose}
    >
      {children}
    </GuardedChange>
  )
}
