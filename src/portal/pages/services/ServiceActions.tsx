import { Button } from "@mantine/core"
import { useNavigate } from "@tanstack/react-router"
import { call } from "../../api/control.ts"
import { useAllowed } from "../../api/session.ts"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { path, type Service } from "./service.tsx"

export const ServiceActions = ({ onEdit, service }: { readonly service: Service; readonly onEdit: () => void }) => {
  const { enabled, name } = service
  const { ask, dialog } = useConfirm()
  const navigate = useNavigate()
  const mayChange = useAllowed("services:update")
  if (!mayChange) return null
  const enable = () => call("POST", `${path}/enable`, { params: { name } })
  const disable = () => call("POST", `${path}/disable`, { params: { name } })
  const audit = { type: "service", id: name }
  return (
    <>
      <Button
        variant="default"
        onClick={() =>
          ask({
            title: `${enabled ? "Disable" : "Enable"} ${name}`,
            action: enabled ? "Disable" : "Enable",
            body: enabled ? (
              <p>Requests to {service.route_pattern} are refused from then on.</p>
            ) : (
              <p>
                Keys that may use the service reach it at <code>{service.route_pattern}</code> from then on.
                {service.missing_runtime_fields.length > 0 &&
                  ` Requests fail until these are set: ${service.missing_runtime_fields.join(", ")}.`}
              </p>
            ),
            run: enabled ? disable : enable,
            undo: enabled ? enable : disable,
            done: `${name} is ${enabled ? "disabled" : "enabled"}.`,
            audit
          })
        }
      >
        {enabled ? "Disable" : "Enable"}
      </Button>
      <Button variant="default" onClick={onEdit}>
        Edit
      </Button>
      <Button
        variant="default"
        c="red"
        onClick={() =>
          ask({
            title: `Delete ${name}`,
            action: "Delete",
            name,
            body: <p>Its credential, endpoints and prices are deleted with it. The record of its requests stays.</p>,
            run: () => call("DELETE", path, { params: { name } }),
            done: `${name} is deleted.`,
            audit,
            onDone: () => void navigate({ to: "/services" })
          })
        }
      >
        Delete
      </Button>
      {dialog}
    </>
  )
}
