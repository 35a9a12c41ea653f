import { notifications } from "@mantine/notifications"
import { useQueryClient } from "@tanstack/react-query"
import type { FieldError } from "../../../api/ApiError.ts"
import { call } from "../../../api/control.ts"
import type { BodyOf } from "../../../api/Endpoints.ts"
import { useApiWrite } from "../../../api/queries.ts"
import { GuardedChange, tellRefused } from "../../../shared/dialogs/GuardedChange.tsx"
import { ImpactNote } from "../../../shared/policy/Impact.tsx"
import { type Layer, layerFields, layerName, layerPath, prefixed, staleAfterLayers, upsertOf } from "../words/layer.ts"

export type LayerPatch = BodyOf<"PATCH", typeof layerPath>

interface Props {
  readonly layer: Layer
  readonly changes: LayerPatch
  readonly onClose: () => void
  readonly onDone: () => void
  /** The server refused values: the form shows why. */
  readonly onRefused?: (errors: ReadonlyArray<FieldError>) => void
}

const flat = ({ guardrail_policy, policy, shared, ...rest }: LayerPatch) => ({
  ...rest,
  ...prefixed("policy", policy),
  ...prefixed("shared", shared),
  ...prefixed("guardrail_policy", guardrail_policy)
})

/** Shows the difference of a change of a layer and whom it hits, and makes it unless somebody else was faster. */
export const LayerReview = ({ changes, layer, onClose, onDone, onRefused }: Props) => {
  const client = useQueryClient()
  const update = useApiWrite("PATCH", layerPath, staleAfterLayers)
  const params = { id: layer.id }
  const reread = () =>
    client.fetchQuery({
      staleTime: 0,
      queryKey: [layerPath, params, undefined],
      queryFn: () => call("GET", layerPath, { params })
    })
  const before = upsertOf(layer)
  return (
    <GuardedChange
      title={`Change the layer of ${layerName(layer)}`}
      action="Change it"
      base={layer}
      reread={reread}
      fieldsOf={layerFields}
      changes={flat(changes)}
      isBusy={update.isPending}
      error={update.error}
      onConfirm={({ updated_at }) =>
        update.mutate(
          { params, body: { ...changes, expected_updated_at: updated_at } },
          {
            onSuccess: () => {
              notifications.show({ message: `The layer of ${layerName(layer)} is changed.` })
              onDone()
            },
            onError: (error) => tellRefused(error, onRefused)
          }
        )
      }
      onClose={onClose}
    >
      <ImpactNote
        proposal={{
          layer: {
            ...before,
            enabled: changes.enabled ?? layer.enabled,
            policy: { ...before.policy, ...changes.policy },
            shared: { ...before.shared, ...changes.shared },
            guardrail_policy: { ...before.guardrail_policy, ...changes.guardrail_policy }
          }
        }}
      />
    </GuardedChange>
  )
}
