import type { ResponseOf } from "../../api/Endpoints.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
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
                    <ForeignText>{service_name}</ForeignText>: <code>{field}</code> {message}
                  </div>
                ))
              ] as const
            ]),
        ["Added", <ForeignText key="added">{added.join(", ")}</ForeignText>],
        [
          "Changed",
          changed.length === 0
            ? ""
            : changed.map((name) => (
                <div key={name}>
                  <ForeignText>{name}</ForeignText>: <code>{(changed_fields[name] ?? []).join(", ")}</code>
                </div>
              ))
        ],
        ["Disabled, as the list does not name them", <ForeignText key="removed">{removed.join(", ")}</ForeignText>]
      ]}
    />
  )
}
