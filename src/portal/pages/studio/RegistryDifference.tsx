import type { ResponseOf } from "../../api/Endpoints.ts"
import { Facts } from "../../shared/words/Facts.tsx"

type Diff = ResponseOf<"POST", "/admin-ui/admin/services/import/preview">["diff"]

/** What a list of services adds, changes and disables. */
export const RegistryDifference = ({ diff }: { readonly diff: Diff }) => {
  const { added, changed, changed_fields, invalid, removed } = diff
  if (added.length + changed.length + removed.length + invalid.length === 0) return <p>Nothing changes.</p>
  return (
    <Facts
      facts={[
        ...(invalid.length === 0
          ? []
          : [
              [
                "Invalid",
                invalid.map(({ field, message, service_name }) => (
                  <div key={`${service_name} ${field}`}>
                    <bdi>{service_name}</bdi>: <code>{field}</code> {message}
                  </div>
                ))
              ] as const
            ]),
        ["Added", <bdi key="added">{added.join(", ")}</bdi>],
        [
          "Changed",
          changed.length === 0
            ? ""
            : changed.map((name) => (
                <div key={name}>
                  <bdi>{name}</bdi>: <code>{(changed_fields[name] ?? []).join(", ")}</code>
                </div>
              ))
        ],
        ["Disabled, as the list does not name them", <bdi key="removed">{removed.join(", ")}</bdi>]
      ]}
    />
  )
}
