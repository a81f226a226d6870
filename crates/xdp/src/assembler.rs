//! BPF instructions written down in the order they run, with labels to jump to. Only those that our
//! programs use exist. Names and numbers are those of the instruction set (RFC 9669).

/// Registers: `R0` has results, `R1` to `R5` are arguments and do not survive a call, `R6` to `R9`
/// do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
}

/// Bytes that a load or store moves.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum Width {
    W32 = 0x00,
    W16 = 0x08,
    W8 = 0x10,
    W64 = 0x18,
}

/// When a jump is taken. Comparisons are of 64 bits.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum When {
    Equal = 0x10,
    Greater = 0x20,
    NotEqual = 0x50,
    SignedGreater = 0x60,
}

/// What is done to a register, in 64 bits.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum Do {
    Add = 0x00,
    Subtract = 0x10,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Set = 0xb0,
}

/// The second operand: a register or a number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum With {
    Reg(Reg),
    Number(i32),
}

/// One instruction as the kernel reads it: `struct bpf_insn`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    number: i32,
}

#[derive(Debug, Default)]
pub(crate) struct Assembler {
    code: Vec<Instruction>,
    labels: Vec<(&'static str, usize)>,
    jumps: Vec<(usize, &'static str)>,
}

const LOAD_64_BIT_NUMBER: u8 = 0x18;
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const JUMP: u8 = 0x05;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const FROM_REGISTER: u8 = 0x08;
/// `BPF_PSEUDO_MAP_FD` and `BPF_PSEUDO_MAP_VALUE` of linux/bpf.h: what the loader puts there.
const A_MAP: u8 = 1;
const A_MAP_VALUE: u8 = 2;

impl Assembler {
    /// `to = *(from + offset)`
    pub(crate) fn load(&mut self, width: Width, to: Reg, from: Reg, offset: i16) -> &mut Self {
        self.put(LOAD & !0x18 | width as u8, to as u8, from as u8, offset, 0)
    }

    /// `*(to + offset) = from`
    pub(crate) fn store(&mut self, width: Width, to: Reg, offset: i16, from: Reg) -> &mut Self {
        self.put(STORE & !0x18 | width as u8, to as u8, from as u8, offset, 0)
    }

    /// `to = to what with`
    pub(crate) fn alu(&mut self, what: Do, to: Reg, with: impl Into<With>) -> &mut Self {
        let (register, from, number) = with.into().parts();
        self.put(0x07 | what as u8 | register, to as u8, from, 0, number)
    }

    /// Goes on at `label` if the comparison holds.
    pub(crate) fn jump_if(
        &mut self,
        left: Reg,
        when: When,
        right: impl Into<With>,
        label: &'static str,
    ) -> &mut Self {
        let (register, from, number) = right.into().parts();
        self.jumps.push((self.code.len(), label));
        self.put(JUMP | when as u8 | register, left as u8, from, 0, number)
    }

    /// Goes on at `label`.
    pub(crate) fn jump(&mut self, label: &'static str) -> &mut Self {
        self.jumps.push((self.code.len(), label));
        self.put(JUMP, 0, 0, 0, 0)
    }

    /// `to` = the map, as helpers want it.
    pub(crate) fn map(&mut self, to: Reg, map: i32) -> &mut Self {
        self.put(LOAD_64_BIT_NUMBER, to as u8, A_MAP, 0, map).put(0, 0, 0, 0, 0)
    }

    /// `to` = the address of an array map's first value.
    pub(crate) fn map_value(&mut self, to: Reg, map: i32) -> &mut Self {
        self.put(LOAD_64_BIT_NUMBER, to as u8, A_MAP_VALUE, 0, map).put(0, 0, 0, 0, 0)
    }

    /// `R0` = what the kernel's helper of this number says to `R1` to `R5`.
    pub(crate) fn call(&mut self, helper: i32) -> &mut Self {
        self.put(CALL, 0, 0, 0, helper)
    }

    /// Ends with `R0`.
    pub(crate) fn exit(&mut self) -> &mut Self {
        self.put(EXIT, 0, 0, 0, 0)
    }

    /// The place that jumps to `name` go to.
    pub(crate) fn label(&mut self, name: &'static str) -> &mut Self {
        self.labels.push((name, self.code.len()));
        self
    }

    /// The program, with every jump knowing how far it goes.
    pub(crate) fn finish(&self) -> Vec<Instruction> {
        let mut code = self.code.clone();
        for &(at, label) in &self.jumps {
            let found = self.labels.iter().find(|(name, _)| *name == label);
            let &(_, to) = found.expect("a jump goes to a label that stands in the program");
            // counted from the instruction behind the jump
            let distance = to.cast_signed() - at.cast_signed() - 1;
            code[at].offset = i16::try_from(distance).expect("our programs are short");
        }
        code
    }

    fn put(&mut self, code: u8, to: u8, from: u8, offset: i16, number: i32) -> &mut Self {
        let registers = if cfg!(target_endian = "big") { to << 4 | from } else { from << 4 | to };
        self.code.push(Instruction { code, registers, offset, number });
        self
    }
}

impl With {
    fn parts(self) -> (u8, u8, i32) {
        match self {
            With::Reg(reg) => (FROM_REGISTER, reg as u8, 0),
            With::Number(number) => (0, 0, number),
        }
    }
}

impl From<Reg> for With {
    fn from(reg: Reg) -> With {
        With::Reg(reg)
    }
}

impl From<i32> for With {
    fn from(number: i32) -> With {
        With::Number(number)
    }
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::Reg::{R0, R1, R2, R3, R6, R7, R9};
    use super::*;

    /// The bytes of a program, eight an instruction.
    fn bytes(code: &[Instruction]) -> Vec<[u8; 8]> {
        let one = |i: &Instruction| {
            let ([o0, o1], [n0, n1, n2, n3]) = (i.offset.to_le_bytes(), i.number.to_le_bytes());
            [i.code, i.registers, o0, o1, n0, n1, n2, n3]
        };
        code.iter().map(one).collect()
    }

    /// As `llvm-mc` and the tables of RFC 9669 have them.
    #[test]
    fn encodings_are_those_of_the_instruction_set() {
        let mut at = Assembler::default();
        at.load(Width::W32, R2, R6, 4)
            .load(Width::W16, R0, R2, 12)
            .load(Width::W64, R1, R7, 8)
            .load(Width::W8, R1, R2, 14)
            .store(Width::W64, R9, -8, R1)
            .alu(Do::Set, R6, R1)
            .alu(Do::Set, R0, 2)
            .alu(Do::Add, R2, 14)
            .alu(Do::Subtract, R0, R1)
            .alu(Do::And, R9, 63)
            .alu(Do::Or, R3, R2)
            .alu(Do::ShiftLeft, R9, 6)
            .alu(Do::ShiftRight, R1, 16)
            .map(R1, 5)
            .map_value(R7, 6)
            .call(51)
            .exit();
        assert_eq!(
            bytes(&at.finish()),
            [
                [0x61, 0x62, 4, 0, 0, 0, 0, 0],
                [0x69, 0x20, 12, 0, 0, 0, 0, 0],
                [0x79, 0x71, 8, 0, 0, 0, 0, 0],
                [0x71, 0x21, 14, 0, 0, 0, 0, 0],
                [0x7b, 0x19, 0xf8, 0xff, 0, 0, 0, 0],
                [0xbf, 0x16, 0, 0, 0, 0, 0, 0],
                [0xb7, 0x00, 0, 0, 2, 0, 0, 0],
                [0x07, 0x02, 0, 0, 14, 0, 0, 0],
                [0x1f, 0x10, 0, 0, 0, 0, 0, 0],
                [0x57, 0x09, 0, 0, 63, 0, 0, 0],
                [0x4f, 0x23, 0, 0, 0, 0, 0, 0],
                [0x67, 0x09, 0, 0, 6, 0, 0, 0],
                [0x77, 0x01, 0, 0, 16, 0, 0, 0],
                [0x18, 0x11, 0, 0, 5, 0, 0, 0],
                [0; 8],
                [0x18, 0x27, 0, 0, 6, 0, 0, 0],
                [0; 8],
                [0x85, 0, 0, 0, 51, 0, 0, 0],
                [0x95, 0, 0, 0, 0, 0, 0, 0],
            ]
        );
    }

    #[test]
    fn jumps_know_how_far_they_go() {
        let mut at = Assembler::default();
        at.label("again")
            .jump_if(R1, When::Equal, 0, "end")
            .jump_if(R2, When::Greater, R3, "end")
            .jump_if(R3, When::NotEqual, R1, "end")
            .jump_if(R0, When::SignedGreater, 50, "again")
            .jump("end")
            .map(R1, 3)
            .label("end")
            .exit();
        assert_eq!(
            bytes(&at.finish()[..5]),
            [
                [0x15, 0x01, 6, 0, 0, 0, 0, 0],
                [0x2d, 0x32, 5, 0, 0, 0, 0, 0],
                [0x5d, 0x13, 4, 0, 0, 0, 0, 0],
                [0x65, 0x00, 0xfc, 0xff, 50, 0, 0, 0],
                [0x05, 0x00, 2, 0, 0, 0, 0, 0],
            ]
        );
    }
}
