import { useTextSearch } from "../../../address/search.ts"
import { RaiseDialog } from "./RaiseDialog.tsx"

/** Opens the form where the address says so (`do=raise`), as the palette and other pages do. */
export const RaiseLimit = () => {
  const { change, text } = useTextSearch()
  if (text("do") !== "raise") return null
  return (
    <RaiseDialog
      keyId={text("key_id")}
      meter={text("meter")}
      onKey={(id) => change({ key_id: id })}
      onClose={() => change({ do: undefined, key_id: undefined, meter: undefined })}
    />
  )
}
