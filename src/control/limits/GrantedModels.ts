import { Effect } from "effect"
import { allowsModel } from "../../policy/ModelPattern.ts"
import { layerName } from "../../policy/PolicyLayer.ts"
import { ownerOf } from "../../state/StoredKeys.ts"
import { ControlError } from "../api/schema/Errors.ts"
import type * as PolicyState from "../policies/PolicyState.ts"

/** Fails if a key may not use the model, or not without a price. Names the layers that refuse the model. */
export const requireAllowed = Effect.fnUntraced(function* (
  policies: ReturnType<typeof PolicyState.make>,
  keyId: string,
  model: string
) {
  const key = yield* policies.key(keyId)
  if (key === undefined) return yield* keyNotFound
  if (key.revoked) return yield* new ControlError("key_revoked", "A revoked key can use no model. Create another key.")
  const owners = [...(yield* policies.layersForOwner(ownerOf(key))), key.ownLayer]
  const ofModel = (yield* policies.layers).of.model.get(model)
  const layers = ofModel === undefined ? owners : [...owners, ofModel]
  const refusing = layers.filter(({ policy }) => policy.deny || !allowsModel(policy.allowed_models, model))
  if (refusing.length > 0) {
    return yield* new ControlError(
      "invalid_policy_payload",
      `${refusing.map(layerName).join(", ")} ${refusing.length === 1 ? "refuses" : "refuse"} ${model}. Change that first.`
    )
  }
  if (!layers.some(({ policy }) => policy.unpriced_models === "refuse")) return
  const prices = yield* policies.prices([model])
  if (prices.priceOf(model) === undefined) {
    return yield* new ControlError(
      "invalid_policy_payload",
      `${model} has no price, and the policy of the key refuses models without one. Set its price first.`
    )
  }
})

const keyNotFound = new ControlError("not_found", "No key has this id.", { param: "key_id" })
