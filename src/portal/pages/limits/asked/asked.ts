import type { ResponseOf } from "../../../api/Endpoints.ts"

export const askedPath = "/admin-ui/admin/limits/raise-requests"
export type Asked = ResponseOf<"GET", typeof askedPath>[number]

export const nameOf = ({ key_name, key_prefix }: Asked): string => key_name ?? key_prefix
