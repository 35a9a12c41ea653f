import { useQueryClient } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { ApiError, type FieldError } from "../../../api/ApiError.ts"
import { call } from "../../../api/control.ts"
import { failureOf } from "../../../api/failure.ts"
import { formerOf } from "../../../shared/change/changed.ts"
import { readAgain } from "../../../shared/change/readAgain.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { changedMeanwhile, GuardedChange, tellRefused } from "../../../shared/dialogs/GuardedChange.tsx"
import { ImpactNote } from "../../../shared/policy/Impact.tsx"
import { usePolicyFields } from "../../../shared/policy/usePolicyFields.ts"
import {
  isStored,
  type Layer,
  type LayerPatch,
  layerAt,
  layerFields,
  layerName,
  layerPath,
  layersPath,
  type NewLayer,
  prefixed,
  proposedOf,
  restrictedFields
} from "../words/layer.ts"

interface Props {
  /** The layer as the person saw it, or the scope that had none. */
  readonly layer: Layer | NewLayer
  readonly changes: LayerPatch
  readonly onClose: () => void
  readonly onDone: (id: string) => void
  /** The server refused values: the form shows why. */
  readonly onRefused?: (errors: ReadonlyArray<FieldError>) => void
  readonly children?: ReactNode
}

const flat = ({ guardrail_policy, policy, shared, ...rest }: LayerPatch) => ({
  ...rest,
  ...prefixed("policy", policy),
  ...prefixed("shared", shared),
  ...prefixed("guardrail_policy", guardrail_policy)
})

/** Makes the change to this version, and to no other one. */
const change = (version: Layer | NewLayer, changes: LayerPatch): Promise<Layer> =>
  isStored(version)
    ? call("PATCH", layerPath, {
        params: { id: version.id },
        body: { ...changes, expected_updated_at: version.updated_at }
      })
    : call("POST", layersPath, { body: { ...proposedOf(version, changes), expected_updated_at: null } })

/** Takes a change back, unless somebody else has changed the layer since. */
const undo = async (version: Layer | NewLayer, changes: LayerPatch, after: Layer): Promise<unknown> => {
  if (isStored(version)) return change(after, formerOf(version, changes))
  const params = { id: after.id }
  const { updated_at } = await call("GET", layerPath, { params })
  if (updated_at !== after.updated_at)
    throw new ApiError(409, changedMeanwhile, "Somebody else has changed the layer since, so that it stays.")
  return call("DELETE", layerPath, { params })
}

/**
 * Shows the difference of a change of a layer and whom it hits, and makes it. If somebody else was faster, also with the
 * first layer of a scope, it shows both versions.
 */
export const LayerReview = ({ changes, children, layer, onClose, onDone, onRefused }: Props) => {
  const client = useQueryClient()
  const tell = useTell()
  const [current, setCurrent] = useState(layer)
  const [error, setError] = useState<ApiError | null>(null)
  const [isBusy, setBusy] = useState(false)
  const fields = usePolicyFields().data?.fields ?? []
  const fieldsOf = (version: Layer | NewLayer) =>
    !isStored(version) ? {} : isStored(layer) ? layerFields(version) : restrictedFields(version, fields)
  const reread = async () => {
    const latest = isStored(layer)
      ? await call("GET", layerPath, { params: { id: layer.id } })
      : await layerAt(layer.kind, layer.scope_id)
    setCurrent(latest)
    return latest
  }
  const apply = async (version: Layer | NewLayer) => {
    setBusy(true)
    setError(null)
    try {
      const after = await change(version, changes)
      await readAgain(client)
      tell({
        done: `The layer of ${layerName(after)} is ${isStored(version) ? "changed" : "made"}.`,
        audit: { type: "policy_layer", id: after.id },
        undo: () => undo(version, changes, after)
      })
      onDone(after.id)
    } catch (cause) {
      const failure = failureOf(cause)
      setError(failure)
      setBusy(false)
      tellRefused(failure, onRefused)
    }
  }
  return (
    <GuardedChange<Layer | NewLayer>
      title={isStored(layer) ? `Change the layer of ${layerName(layer)}` : "Create the layer"}
      action={isStored(layer) ? "Change it" : "Create it"}
      base={layer}
      reread={reread}
      fieldsOf={fieldsOf}
      changes={flat(changes)}
      isBusy={isBusy}
      error={error}
      onConfirm={(version) => void apply(version)}
      onClose={onClose}
    >
      {children}
      <ImpactNote proposal={{ layer: proposedOf(current, changes) }} />
    </GuardedChange>
  )
}
