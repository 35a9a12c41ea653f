import { PageHeader } from "../../shared/page/PageHeader.tsx"

const UsePage = () => <PageHeader title="Use it" />

export default UsePage
