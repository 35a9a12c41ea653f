import { useTextSearch } from "../../address/search.ts"
import { Segments } from "../../shared/page/Segments.tsx"

/** The queues as rows, or as a map of exchanges, queues and stages. */
export const MapSwitch = () => {
  const { change, text } = useTextSearch()
  return (
    <Segments
      aria-label="Show as"
      data={[
        { value: "rows", label: "Queues" },
        { value: "map", label: "Map" }
      ]}
      value={text("view") === "map" ? "map" : "rows"}
      onChange={(view) => change({ view: view === "map" ? view : undefined })}
    />
  )
}
