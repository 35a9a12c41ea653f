import { useAllowed } from "../../api/session.ts"
import { StatusWord } from "../words/StatusWord.tsx"
import { useFirstModel } from "./firstModel.ts"

interface Props {
  readonly policy: {
    readonly allowed_models: ReadonlyArray<string> | null
    readonly unpriced_models: "flat" | "dearest" | "refuse"
  }
}

const effects = {
  flat: "so each request is charged one flat amount, whatever it uses",
  dearest: "so each request is charged the highest price there is",
  refuse: "and its policy refuses models without one"
}

/** Says what becomes of the requests of a new key while no price is stored for them, and the way out. */
export const UnpricedNote = ({ policy: { allowed_models, unpriced_models } }: Props) => {
  const mayImport = useAllowed("settings:update")
  const { isUnpriced } = useFirstModel(allowed_models)
  if (!isUnpriced) return null
  return (
    <p>
      <StatusWord meaning="warning">no price</StatusWord> No model that this key may call has a price yet,{" "}
      {effects[unpriced_models]} (<code>unpriced_models</code> is <code>{unpriced_models}</code>).{" "}
      {mayImport ? (
        <>
          <a href="/admin-ui/models?do=import" target="_blank" rel="noreferrer">
            Import the price book
          </a>{" "}
          first, in another tab
        </>
      ) : (
        "Somebody who may change settings can import the price book"
      )}
      {unpriced_models === "refuse" && (
        <>
          , or set <code>unpriced_models</code> to <code>flat</code>
        </>
      )}
      .
    </p>
  )
}
